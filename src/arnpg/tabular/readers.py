"""Models from elsewhere: ``.npz`` files without pickle, and the tables of Gymnasium's toy-text environments."""

from __future__ import annotations

import contextlib
import difflib
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from arnpg.archive import read_archive, write_archive
from arnpg.errors import ModelError
from arnpg.tabular.mdp import MDP

__all__ = ["damage_named", "from_gymnasium", "load_model", "save_model"]

REQUIRED = ("rewards", "discount")
FORMS = (("transitions",), ("data", "indices", "indptr"), ("successors", "probabilities"))
OPTIONAL = ("names", "initial", "allowed")
KNOWN = (*FORMS[0], *REQUIRED, *OPTIONAL, *FORMS[1], *FORMS[2])

Reward = Callable[[int, int, int], float]


def save_model(mdp: MDP, path: str | os.PathLike) -> None:
    """Write a model to one ``.npz`` file, without pickle; ``arnpg.load`` reads it back, mapped where it is large."""
    kernel = mdp.transitions
    if isinstance(kernel, np.ndarray):
        arrays = {"transitions": kernel}
    else:
        arrays = {"data": kernel.data, "indices": kernel.indices, "indptr": kernel.indptr}
    arrays |= {"rewards": mdp.rewards, "initial": mdp.initial}
    if mdp.allowed is not None:
        arrays["allowed"] = mdp.allowed
    header = {"names": list(mdp.names), "discount": mdp.discount}
    write_archive(path, "model", header, arrays)


def load_model(path: str | os.PathLike) -> MDP:
    """Read a model that ``save_model`` wrote, or ``numpy.savez`` with these keys.

    ``rewards`` ``(m, S, A)`` and ``discount`` are needed, and one of ``transitions`` ``(S, A, S)``, ``successors`` with
    ``probabilities`` ``(S, A, K)``, or ``data``, ``indices``, ``indptr`` of a compressed sparse ``(S*A, S)`` matrix;
    ``names``, ``initial`` and ``allowed`` are welcome. Every check of ``MDP`` applies.
    """
    with damage_named(path):
        header, arrays = read_archive(path, "model")
    entries = {**arrays, **{name: header[name] for name in ("names", "discount") if name in header}}
    form = _check_entries(path, entries)
    given = {name: entries[name] for name in ("discount", *OPTIONAL) if name in entries}
    if isinstance(given.get("names"), np.ndarray):
        given["names"] = [str(name) for name in np.atleast_1d(given["names"])]
    parts = [entries[name] for name in form]
    try:
        if form == FORMS[2]:
            return MDP.from_slots(parts[0], parts[1], entries["rewards"], **given)
        transitions = parts[0] if form == FORMS[0] else _compressed(parts, np.shape(entries["rewards"]))
        return MDP(transitions, entries["rewards"], **given)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error


def _compressed(parts: list[np.ndarray], shape: tuple[int, ...]) -> sparse.csr_array:
    """The matrix of three arrays, whose indices are checked: SciPy would believe them."""
    data, indices, indptr = parts
    if len(shape) != 3:
        raise ModelError(f"rewards must have shape (m, S, A), got {shape}.")
    rows, columns = shape[1] * shape[2], shape[1]
    whole = all(part.ndim == 1 for part in parts) and indices.dtype.kind in "iu" and indptr.dtype.kind in "iu"
    if not whole or len(indptr) != rows + 1 or len(data) != len(indices) or indptr[0] != 0 or indptr[-1] != len(data):
        raise ModelError(f"data, indices and indptr are not a compressed sparse matrix of shape {(rows, columns)}.")
    if (np.diff(indptr) < 0).any() or (len(indices) and not 0 <= indices.min() <= indices.max() < columns):
        raise ModelError(f"indices must be in [0, {columns}) and indptr must not decrease.")
    return sparse.csr_array((data, indices, indptr), shape=(rows, columns))


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


def _check_entries(path: str | os.PathLike, entries: Mapping[str, Any]) -> tuple[str, ...]:
    """Refuse unknown, missing and double entries; returns in which form the transitions are."""
    for name in entries:
        if name not in KNOWN:
            near = difflib.get_close_matches(name, KNOWN, n=1)
            hint = f"perhaps you meant {near[0]!r}" if near else f"a model has {', '.join(KNOWN[:6])}"
            raise ModelError(f"{path} has an entry {name!r} that no model has; {hint}.")
    begun = [form for form in FORMS if any(name in entries for name in form)] or [FORMS[0]]
    missing = [name for name in (*begun[0], *REQUIRED) if name not in entries]
    if missing:
        raise ModelError(f"{path} lacks {', '.join(missing)}; a model has {', '.join(KNOWN[:6])}.")
    if len(begun) > 1:
        raise ModelError(f"{path} has {begun[0][0]} and {begun[1][0]}; give the transitions in one form.")
    return begun[0]


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
