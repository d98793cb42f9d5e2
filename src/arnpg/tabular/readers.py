"""Models from elsewhere: ``.npz`` files without pickle, and the tables of Gymnasium's toy-text environments."""

from __future__ import annotations

import contextlib
import difflib
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from arnpg.archive import read_archive, write_archive
from arnpg.errors import ModelError
from arnpg.tabular.mdp import MDP

__all__ = ["damage_named", "from_gymnasium", "load_model", "save_model"]

REQUIRED = ("transitions", "rewards", "discount")
OPTIONAL = ("names", "initial")

Reward = Callable[[int, int, int], float]


def save_model(mdp: MDP, path: str | os.PathLike) -> None:
    """Write a model to one ``.npz`` file, without pickle; ``arnpg.load`` reads it back."""
    arrays = {"transitions": mdp.transitions, "rewards": mdp.rewards, "initial": mdp.initial}
    header = {"names": list(mdp.names), "discount": mdp.discount}
    write_archive(path, "model", header, arrays)


def load_model(path: str | os.PathLike) -> MDP:
    """Read a model that ``save_model`` wrote, or ``numpy.savez`` with these keys.

    ``transitions`` ``(S, A, S)``, ``rewards`` ``(m, S, A)`` and ``discount`` are needed; ``names`` and ``initial`` are
    welcome. Every check of ``MDP`` applies.
    """
    with damage_named(path):
        header, arrays = read_archive(path, "model")
    entries = {**arrays, **{name: header[name] for name in ("names", "discount") if name in header}}
    _check_entries(path, entries)
    given = {name: entries[name] for name in (*REQUIRED, *OPTIONAL) if name in entries}
    if isinstance(given.get("names"), np.ndarray):
        given["names"] = [str(name) for name in np.atleast_1d(given["names"])]
    try:
        return MDP(given.pop("transitions"), given.pop("rewards"), **given)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error


def from_gymnasium(
    env: Any,
    rewards: Mapping[str, Reward] | None = None,
    *,
    discount: float,
    reward: str | None = "reward",
    initial: Any = None,
) -> MDP:
    """A model from the table ``env.unwrapped.P`` of a Gymnasium toy-text environment.

    Where a transition ends the episode, nothing more is earned: it leads to one absorbing state, the last, in which
    every reward is 0. Time limits are not part of the table, so episodes are cut by the discount alone.

    Args:
        env: an environment, or its name, such as ``"FrozenLake-v1"``.
        rewards: more objectives, each a function ``(state, action, next_state) -> value``.
        discount: ``gamma`` in ``[0, 1)``.
        reward: the name of the environment's own reward; ``None`` leaves it out.
        initial: where episodes start, ``(S,)``; the environment's own distribution where it is left out.
    """
    table, distribution = _table(env)
    states = len(table)
    actions = _action_count(table)
    transitions = np.zeros((states + 1, actions, states + 1))
    transitions[states, :, states] = 1.0
    functions: dict[str, Reward] = dict(rewards or {})
    names = [*([reward] if reward is not None else []), *functions]
    tables = np.zeros((len(names), states + 1, actions))
    for state, action, chance, following, earned, ended in _outcomes(table):
        transitions[state, action, states if ended else following] += chance
        values = [function(state, action, following) for function in functions.values()]
        own = [earned] if reward is not None else []
        tables[:, state, action] += chance * np.array([*own, *values], float)
    start = distribution if initial is None else np.asarray(initial, float)
    start = np.full(states, 1 / states) if start is None else start
    start = np.append(start, 0.0) if start.shape == (states,) else start
    return MDP(transitions, tables, discount=discount, initial=start, names=names)


@contextlib.contextmanager
def damage_named(path: str | os.PathLike) -> Iterator[None]:
    """Turn what damaged compressed bytes can raise into a sentence with the file's name."""
    try:
        yield
    except (zlib.error, AttributeError, SyntaxError) as error:
        raise ModelError(f"{path} cannot be read, it is damaged: {error}.") from error


def _check_entries(path: str | os.PathLike, entries: Mapping[str, Any]) -> None:
    known = (*REQUIRED, *OPTIONAL)
    for name in entries:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"perhaps you meant {near[0]!r}" if near else f"a model has {', '.join(known)}"
            raise ModelError(f"{path} has an entry {name!r} that no model has; {hint}.")
    missing = [name for name in REQUIRED if name not in entries]
    if missing:
        raise ModelError(f"{path} lacks {', '.join(missing)}; a model has {', '.join(known)}.")


def _table(env: Any) -> tuple[Mapping, np.ndarray | None]:
    """The environment's table, and where it starts."""
    if isinstance(env, str):
        try:
            import gymnasium
        except ImportError as error:
            raise ModelError('a name needs Gymnasium; install it with pip install "arnpg[gym]".') from error
        try:
            env = gymnasium.make(env)
        except gymnasium.error.Error as error:
            raise ModelError(f"Gymnasium cannot make {env!r}: {error}") from error
    inner = getattr(env, "unwrapped", env)
    table = getattr(inner, "P", None)
    if not table:
        raise ModelError(
            f"env must have a table env.unwrapped.P, and {type(inner).__name__} has none; "
            "FrozenLake-v1, CliffWalking-v1 and Taxi-v3 do."
        )
    distribution = getattr(inner, "initial_state_distrib", None)
    return table, None if distribution is None else np.asarray(distribution, float)


def _action_count(table: Mapping) -> int:
    if sorted(table) != list(range(len(table))):
        raise ModelError("env.unwrapped.P must have the states 0, 1, ... as keys, without a gap.")
    actions = len(table[0])
    for state in range(len(table)):
        if sorted(table[state]) != list(range(actions)):
            raise ModelError(
                f"env.unwrapped.P[{state}] must have the actions 0 ... {actions - 1}, got {sorted(table[state])}."
            )
    return actions


def _outcomes(table: Mapping) -> Any:
    """``state, action, probability, next state, reward, terminated`` of every entry."""
    for state in range(len(table)):
        for action in range(len(table[state])):
            for chance, following, earned, ended in table[state][action]:
                yield state, action, float(chance), int(following), float(earned), bool(ended)
