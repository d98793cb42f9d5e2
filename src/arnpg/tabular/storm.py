"""Models in PRISM's language or in JANI, built by Storm, for ``arnpg.MDP.from_prism``; the extra ``arnpg[storm]``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from arnpg.errors import ModelError

__all__ = ["read_prism"]


def read_prism(
    path: str | os.PathLike, constants: Mapping[str, Any] | None, rewards: Sequence[str] | None
) -> tuple[sparse.csr_array, dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Transitions ``(S*A, S)``, rewards by name, allowed actions and the initial distribution.

    ``rewards`` names the reward structures to keep, all of them where it is left out. What a state earns is added to
    each of its actions; rewards of single transitions count with their probability.
    """
    try:
        import stormpy
    except ImportError as error:
        raise ModelError('PRISM and JANI files need Storm; install it with pip install "arnpg[storm]".') from error
    if not Path(path).is_file():
        raise ModelError(f"{path} does not exist; give the path of a PRISM or JANI file.")
    try:
        model = _build(stormpy, os.fspath(path), constants or {})
    except RuntimeError as error:
        raise ModelError(f"{path} cannot be read by Storm: {error}") from error
    return _arrays(model, os.fspath(path), rewards)


def _build(stormpy: Any, path: str, constants: Mapping[str, Any]) -> Any:
    """The explicit model with every reward structure; version 2 of Storm's interface."""
    if path.endswith(".jani"):
        description, _ = stormpy.parse_jani_model(path)
    else:
        description = stormpy.parse_prism_program(path)
    program, _ = stormpy.instantiate_constants(description, dict(constants))
    return stormpy.build_model(program)


def _arrays(
    model: Any, path: str, wanted: Sequence[str] | None
) -> tuple[sparse.csr_array, dict[str, np.ndarray], np.ndarray, np.ndarray]:
    matrix = model.transition_matrix
    states = model.nr_states
    first = np.array([matrix.get_row_group_start(state) for state in range(states)] + [model.nr_choices])
    counts = np.diff(first)
    owner = np.repeat(np.arange(states), counts)
    action = np.arange(model.nr_choices) - first[owner]
    width = int(counts.max())
    entries = [(row, entry.column, entry.value) for row in range(model.nr_choices) for entry in matrix.get_row(row)]
    rows, columns, chances = (np.array(part) for part in zip(*entries, strict=True))
    transitions = sparse.csr_array(
        sparse.coo_array((chances, (owner[rows] * width + action[rows], columns)), shape=(states * width, states))
    )
    known = [name for name in model.reward_models if name]
    names = list(wanted) if wanted is not None else known
    missing = [name for name in names if name not in known]
    if missing or not names:
        raise ModelError(f"{path} has the reward structures {', '.join(known) or '(none)'}, not {', '.join(missing)}.")
    tables = {name: _table(model, name, owner, action, (states, width)) for name in names}
    initial = np.zeros(states)
    initial[list(model.initial_states)] = 1 / len(model.initial_states)
    return transitions, tables, np.arange(width) < counts[:, None], initial


def _table(model: Any, name: str, owner: np.ndarray, action: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """``(S, A)`` of one reward structure."""
    rewards = model.reward_models[name]
    earned = np.zeros(len(owner))
    if rewards.has_state_rewards:
        earned += np.array(rewards.state_rewards)[owner]
    if rewards.has_state_action_rewards:
        earned += np.array(rewards.state_action_rewards)
    if rewards.has_transition_rewards:
        weighted = [
            sum(e.value * p.value for e, p in _paired(rewards.transition_rewards, model.transition_matrix, row))
            for row in range(len(owner))
        ]
        earned += np.array(weighted)
    table = np.zeros(shape)
    table[owner, action] = earned
    return table


def _paired(rewards: Any, chances: Any, row: int) -> list[tuple[Any, Any]]:
    """The transition rewards of a row, each with its probability."""
    known = {entry.column: entry for entry in chances.get_row(row)}
    return [(entry, known[entry.column]) for entry in rewards.get_row(row)]
