"""Sparse transitions from what people have: matrices, successor slots, triples, a Python function.

Each gives a canonical ``(S*A, S)`` matrix that nobody else holds, marked read-only so that ``MDP`` need not copy it.
Memory is estimated before anything big is allocated.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from arnpg.errors import ModelError
from arnpg.tabular import memory
from arnpg.tabular.sparse_checks import canonical

__all__ = ["Enumerated", "enumerate_states", "from_matrices", "from_slots", "from_triples", "table_shape"]

ENTRY = 28  # bytes for each transition while a matrix is put together: entries and indices, twice
ASK_AGAIN = 2**20  # transitions of a function after which memory is asked again; it doubles each time
CURE = "use a machine with more memory, or fewer states"


def owned(matrix: sparse.csr_array) -> sparse.csr_array:
    """Canonical, and read-only from now on."""
    matrix = canonical(matrix)
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.flags.writeable = False
    return matrix


def from_matrices(matrices: Any) -> Any:
    """One ``(S, S)`` matrix for each action, interleaved; one ``(S*A, S)`` matrix is left to the checks of ``MDP``."""
    if sparse.issparse(matrices):
        return matrices
    wrong = "matrices must be (S, S) sparse matrices of one shape, one for each action"
    try:
        parts = [sparse.coo_array(one) for one in matrices]
    except (TypeError, ValueError) as error:
        raise ModelError(f"{wrong}, got {type(matrices).__name__}: {error}.") from error
    if not parts or any(one.ndim != 2 or one.shape != parts[0].shape for one in parts):
        raise ModelError(f"{wrong}.")
    states, columns = cast(tuple[int, int], parts[0].shape)
    if states != columns:
        raise ModelError(f"matrices must have shape (S, S), got {parts[0].shape}; one matrix per action.")
    memory.require(ENTRY * sum(one.nnz for one in parts), "joining the matrices", CURE)
    rows = np.concatenate([one.row.astype(np.int64) * len(parts) + a for a, one in enumerate(parts)])
    entries = np.concatenate([_real(one.data) for one in parts])
    places = (rows, np.concatenate([one.col for one in parts]))
    return owned(sparse.csr_array(sparse.coo_array((entries, places), shape=(states * len(parts), states))))


def from_slots(successors: Any, probabilities: Any) -> sparse.csr_array:
    """From ``(S, A, K)`` successors and probabilities."""
    following, chances = np.asarray(successors), np.asarray(probabilities)
    if following.ndim != 3 or following.shape != chances.shape:
        raise ModelError(
            f"successors and probabilities must both have shape (S, A, K), got {following.shape} and {chances.shape}."
        )
    states, actions, slots = following.shape
    if min(following.shape) == 0:
        raise ModelError(f"successors must have at least one state, action and slot, got shape {following.shape}.")
    _check_indices("successors", following, states)
    memory.require(ENTRY * following.size, f"a model of {following.size} slots", CURE)
    starts = np.arange(states * actions + 1, dtype=np.int64) * slots
    entries = (_real(chances).ravel(), following.astype(_index_type(following.size)).ravel(), starts)
    return owned(sparse.csr_array(entries, shape=(states * actions, states)))


def from_triples(
    states: Any, actions: Any, successors: Any, probabilities: Any, shape: tuple[int, int]
) -> sparse.csr_array:
    """From four arrays of one length and ``(S, A)``."""
    arrays = [np.atleast_1d(np.asarray(part)) for part in (states, actions, successors, probabilities)]
    lengths = {part.shape for part in arrays}
    if len(lengths) != 1 or arrays[0].ndim != 1:
        raise ModelError(
            "states, actions, successors and probabilities must be arrays of one length, got shapes "
            f"{', '.join(str(part.shape) for part in arrays)}."
        )
    for name, part, limit in zip(("states", "actions", "successors"), arrays, (*shape, shape[0]), strict=False):
        _check_indices(name, part, limit)
    memory.require(2 * ENTRY * len(arrays[0]), f"a model of {len(arrays[0])} transitions", CURE)
    rows = arrays[0].astype(np.int64) * shape[1] + arrays[1]
    size = (shape[0] * shape[1], shape[0])
    return owned(sparse.csr_array(sparse.coo_array((_real(arrays[3]), (rows, arrays[2])), shape=size)))


def table_shape(rewards: Any) -> tuple[int, int]:
    """``(S, A)`` of rewards as ``MDP`` takes them."""
    first = next(iter(rewards.values()), None) if isinstance(rewards, Mapping) else rewards
    shape = np.shape(first) if first is not None else ()
    if len(shape) < 2:
        raise ModelError("rewards must hold at least one objective of shape (S, A).")
    return shape[-2], shape[-1]


class Enumerated(NamedTuple):
    """All states that can be reached, as arrays, and the user's names for them."""

    matrix: sparse.csr_array
    rewards: dict[str, np.ndarray]
    initial: np.ndarray
    allowed: np.ndarray
    labels: tuple[Hashable, ...]


def enumerate_states(
    function: Callable[[Any, Any], Any], start: Mapping[Any, float] | Sequence[Any], actions: Sequence[Any], limit: int
) -> Enumerated:
    """Call the function on every state that can be reached, breadth first."""
    try:
        first = dict(start) if isinstance(start, Mapping) else {state: 1 / len(start) for state in start}
    except TypeError as error:
        raise ModelError(f"start must be a mapping or a sequence of hashable states, got {start!r}.") from error
    if not first or len(actions) == 0:
        raise ModelError("start and actions must each hold at least one, got none.")
    seen = _Seen(first)
    for state in seen.queue:  # grows while it is walked
        if len(seen.queue) > limit:
            raise ModelError(f"function reaches more than {limit} states; raise max_states if that is meant.")
        for action in actions:
            outcome = function(state, action)
            seen.usable.append(outcome is not None)
            if outcome is None:
                continue
            try:
                seen.record(*_outcome(outcome, state, action))
            except TypeError as error:
                where = f"function({state!r}, {action!r})"
                raise ModelError(f"{where} must give hashable states, and numbers for the rest: {error}.") from error
    return seen.arrays(first, len(actions))


class _Seen:
    """Lists that grow with every call of the function; the last row of ``usable`` is the present one."""

    def __init__(self, first: Mapping[Hashable, float]) -> None:
        self.queue, self.usable = list(first), list[bool]()
        self._index = {state: place for place, state in enumerate(first)}
        self._rows, self._columns, self._chances = array("q"), array("q"), array("d")
        self._earned: dict[str, tuple[array, array]] = {}
        self._ask = ASK_AGAIN

    def record(self, successors: Sequence, probabilities: Sequence, rewards: Mapping[str, float]) -> None:
        """What one action does in one state."""
        row = len(self.usable) - 1
        for following, chance in zip(successors, probabilities, strict=True):
            if following not in self._index:
                self._index[following] = len(self.queue)
                self.queue.append(following)
            self._rows.append(row)
            self._columns.append(self._index[following])
            self._chances.append(chance)
        for name, value in rewards.items():
            places, values = self._earned.setdefault(name, (array("q"), array("d")))
            places.append(row)
            values.append(value)
        if len(self._rows) >= self._ask:
            memory.require(2 * ENTRY * self._ask, f"a function with more than {self._ask} transitions", CURE)
            self._ask *= 2

    def arrays(self, first: Mapping[Hashable, float], actions: int) -> Enumerated:
        """The model."""
        states = len(self.queue)
        shape, places = (states * actions, states), (np.array(self._rows), np.array(self._columns))
        matrix = owned(sparse.csr_array(sparse.coo_array((np.array(self._chances), places), shape=shape)))
        tables = {name: np.zeros(states * actions) for name in self._earned}
        for name, (rows, values) in self._earned.items():
            tables[name][np.array(rows)] = values
        initial = np.zeros(states)
        initial[: len(first)] = list(first.values())
        tables = {name: table.reshape(states, actions) for name, table in tables.items()}
        return Enumerated(matrix, tables, initial, np.array(self.usable).reshape(states, actions), tuple(self.queue))


def _outcome(outcome: Any, state: Any, action: Any) -> tuple[Sequence, Sequence, Mapping[str, float]]:
    """``(successors, probabilities, rewards)``, or a sentence on what came instead."""
    right = isinstance(outcome, tuple) and len(outcome) == 3 and isinstance(outcome[2], Mapping)
    if not right or len(outcome[0]) != len(outcome[1]):
        raise ModelError(
            f"function({state!r}, {action!r}) must return (successors, probabilities, rewards), two sequences of one "
            f"length and a mapping from names to numbers, got {outcome!r}; return None where it is not allowed."
        )
    return outcome


def _real(given: np.ndarray) -> np.ndarray:
    """A fresh float64 array."""
    if given.dtype.kind not in "biuf":
        raise ModelError(f"probabilities must be real numbers, got dtype {given.dtype}.")
    return np.array(given, np.float64)


def _check_indices(name: str, given: np.ndarray, limit: int) -> None:
    if given.dtype.kind not in "iu":
        raise ModelError(f"{name} must be whole numbers, got dtype {given.dtype}.")
    if given.size and (given.min() < 0 or given.max() >= limit):
        place = np.argwhere((given < 0) | (given >= limit))[0]
        where = ", ".join(map(str, place.tolist()))
        raise ModelError(f"{name}[{where}] must be in [0, {limit}), got {given[tuple(place)]}.")


def _index_type(size: int) -> type:
    return np.int32 if size < np.iinfo(np.int32).max else np.int64
