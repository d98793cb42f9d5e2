"""Models on the points of a box: queue lengths, stock levels, beds in use, positions; written with whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from arnpg.errors import ModelError
from arnpg.tabular import memory
from arnpg.tabular.assembly import CURE, ENTRY, from_slots

__all__ = ["Outcomes", "lattice_parts"]


class Outcomes(NamedTuple):
    """What one action does in every state of a lattice.

    ``moves`` are pairs ``(probability, state)``; a probability is a number or an array of one entry a state, a state a
    tuple of coordinate arrays. ``rewards`` maps names to numbers or arrays. ``allowed`` says where the action exists.
    """

    moves: Sequence[tuple[Any, tuple[Any, ...]]]
    rewards: Mapping[str, Any]
    allowed: Any = True


def lattice_parts(
    shape: Sequence[int],
    actions: int,
    function: Callable[[tuple[np.ndarray, ...], int], Outcomes],
    start: Sequence[int] | None,
) -> tuple[sparse.csr_array, dict[str, np.ndarray], np.ndarray | None, np.ndarray | None]:
    """Transitions, rewards, allowed actions and the initial distribution."""
    sizes = tuple(shape)
    if not sizes or any(not isinstance(n, int | np.integer) or n < 1 for n in sizes):
        raise ModelError(f"shape must hold whole numbers >= 1, got {shape!r}.")
    if not isinstance(actions, int) or actions < 1:
        raise ModelError(f"actions must be a whole number >= 1, got {actions!r}.")
    count = int(np.prod([int(n) for n in sizes], dtype=object))
    memory.require(ENTRY * count * actions, f"a lattice of {count} states and {actions} actions", CURE)
    state = tuple(np.unravel_index(np.arange(count), sizes))
    found = [_outcomes(function(state, action)) for action in range(actions)]
    slots = max(len(outcomes.moves) for outcomes in found)
    memory.require(ENTRY * count * actions * slots, f"a lattice with {count * actions * slots} transitions", CURE)
    successors, chances = np.zeros((count, actions, slots), np.int32), np.zeros((count, actions, slots))
    for action, outcomes in enumerate(found):
        for slot, (chance, target) in enumerate(outcomes.moves):
            chances[:, action, slot] = _spread(chance, count, f"the probability of move {slot} of action {action}")
            inside = np.broadcast_to(np.asarray(chance) != 0, (count,))
            successors[:, action, slot] = _index(target, sizes, inside, action, slot)
    mask = np.stack([_spread(one.allowed, count, "allowed").astype(bool) for one in found], axis=1)
    chances[~mask] = 0.0
    matrix, rewards = from_slots(successors, chances), _rewards(found, count)
    return matrix, rewards, None if mask.all() else mask, _initial(start, sizes, count)


def _outcomes(found: Any) -> Outcomes:
    if not isinstance(found, Outcomes) or not found.moves or not found.rewards:
        raise ModelError(f"function must return arnpg.Outcomes with moves and rewards, got {found!r}.")
    return found


def _spread(given: Any, count: int, what: str) -> np.ndarray:
    """A number, or an array of one entry a state, as the latter."""
    try:
        return np.broadcast_to(np.asarray(given), (count,))
    except ValueError as error:
        shape = np.shape(given)
        raise ModelError(f"{what} must be a number or an array of {count} entries, got shape {shape}.") from error


def _initial(start: Sequence[int] | None, sizes: tuple[int, ...], count: int) -> np.ndarray | None:
    """All in one state; none where nothing is said."""
    if start is None:
        return None
    try:
        place = np.ravel_multi_index(tuple(start), sizes)
    except (ValueError, TypeError) as error:
        raise ModelError(f"start must be a state of the box {sizes}, got {start!r}: {error}.") from error
    return np.bincount([place], minlength=count).astype(float)


def _index(target: tuple[Any, ...], sizes: tuple[int, ...], inside: np.ndarray, action: int, slot: int) -> np.ndarray:
    """Where a move leads; coordinates may leave the box only where the move has probability 0."""
    if len(target) != len(sizes):
        raise ModelError(f"a state must have {len(sizes)} coordinates, got {len(target)} (action {action}).")
    coordinates = []
    for axis, (place, size) in enumerate(zip(target, sizes, strict=True)):
        whole = _spread(place, len(inside), f"coordinate {axis} of move {slot} of action {action}")
        if whole.dtype.kind not in "iub":
            raise ModelError(f"coordinate {axis} of move {slot} of action {action} must be whole, got {whole.dtype}.")
        out = inside & ((whole < 0) | (whole >= size))
        if out.any():
            raise ModelError(
                f"move {slot} of action {action} leaves the box in state {int(np.flatnonzero(out)[0])}: coordinate "
                f"{axis} is {int(whole[out][0])}, and must be in [0, {size}) where the probability is not 0."
            )
        coordinates.append(np.where(inside, whole, 0).astype(np.int64))
    return np.asarray(np.ravel_multi_index(tuple(coordinates), sizes))


def _rewards(found: Sequence[Outcomes], count: int) -> dict[str, np.ndarray]:
    names = list(dict.fromkeys(name for outcomes in found for name in outcomes.rewards))
    tables = {name: np.zeros((count, len(found))) for name in names}
    for action, outcomes in enumerate(found):
        for name, reward in outcomes.rewards.items():
            tables[name][:, action] = _spread(reward, count, f"reward {name!r} of action {action}")
    return tables
