"""Sparse transitions, one row of successor slots for each state and action (``design.md`` section 3).

Row ``s * A + a`` of a compressed sparse matrix holds the successors of ``(s, a)`` and their probabilities, so that

    (P U)[s, a] = sum_k probability[s, a, k] * U[successor[s, a, k]]

is one sparse product, done for blocks of states that fit the cache, on as many threads as the machine has (SciPy's
products release Python's lock). The chain of a policy is a selection of rows of the same matrix.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from typing import NamedTuple, cast, final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from arnpg.tabular import memory

__all__ = ["AbstractChain", "AbstractSlots", "Chain", "Improvement", "SlotKernel", "choose", "in_threads"]

_BLOCK_ENTRIES = 400_000
_SERIAL_ENTRIES = 200_000
SLOT = 12  # bytes of a successor and its probability
CURE = "leave devices out and use the default method, which keep the matrix as it is"


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="arnpg")


def in_threads(task: Callable, items: Iterable, *, serial: bool = False) -> list:
    """``[task(item) for item in items]``, on the machine's cores; tasks must not call this function themselves."""
    items = list(items)
    if serial or len(items) < 2:
        return [task(item) for item in items]
    return list(_threads().map(task, items))


def _row_blocks(matrix: sparse.csr_array, count: int, multiple: int = 1) -> list[tuple[int, int, sparse.csr_array]]:
    """``count`` views ``(first row, last row, rows)`` of a matrix that share its entries."""
    n_rows, n_columns = _shape(matrix)
    edges = np.linspace(0, n_rows // multiple, count + 1).astype(int) * multiple
    blocks = []
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        first, last = matrix.indptr[low], matrix.indptr[high]
        entries = (matrix.data[first:last], matrix.indices[first:last], matrix.indptr[low : high + 1] - first)
        blocks.append((low, high, sparse.csr_array(entries, shape=(high - low, n_columns))))
    return blocks


def _shape(matrix: sparse.csr_array) -> tuple[int, int]:
    return cast(tuple[int, int], matrix.shape)


class Improvement(NamedTuple):
    """The greedy policy of a value function, and the Bellman operator ``TU`` at it."""

    policy: Int[np.ndarray, " s"]
    values: Float[np.ndarray, " s"]


class AbstractChain(abc.ABC):
    """The Markov chain of one policy."""

    @property
    @abc.abstractmethod
    def slots(self) -> int:
        """The largest number of successors of a state."""

    @abc.abstractmethod
    def forward(self, vector: Float[np.ndarray, " s"], serial: bool = False) -> Float[np.ndarray, " s"]:
        """``P x``: the expectation of ``x`` after one step; ``serial`` leaves other cores to other work."""

    @abc.abstractmethod
    def backward(self, vector: Float[np.ndarray, " s"], serial: bool = False) -> Float[np.ndarray, " s"]:
        """``P^T x``: where a distribution ``x`` over states is after one step."""

    @abc.abstractmethod
    def arrivals(self) -> Int[np.ndarray, " s"]:
        """From how many states each state is reached."""


class AbstractSlots(abc.ABC):
    """Transitions of all states and actions, wherever they are stored; ``row_length`` bounds a state's successors."""

    n_states: int
    n_actions: int
    row_length: int

    @abc.abstractmethod
    def improve(
        self, reward: Float[np.ndarray, "s a"], values: Float[np.ndarray, " s"], discount: float
    ) -> Improvement:
        """``TU(s) = max_a reward(s, a) + discount * (P U)(s, a)`` and the first action that attains it."""

    @abc.abstractmethod
    def chain(self, policy: Int[np.ndarray, " s"] | Float[np.ndarray, "s a"]) -> AbstractChain:
        """The chain of a policy: an action for each state, or probabilities ``(S, A)``."""


@final
class Chain(AbstractChain):
    """The Markov chain of one policy in blocks of rows: products with ``P`` and with its transpose."""

    def __init__(self, blocks: list[tuple[int, int, sparse.csr_array]]) -> None:
        self._blocks = blocks

    @property
    def matrix(self) -> sparse.csr_array:
        """``P`` as one matrix."""
        parts = [rows for _, _, rows in self._blocks]
        return parts[0] if len(parts) == 1 else sparse.csr_array(sparse.vstack(parts, format="csr"))

    @cached_property
    def _transposed(self) -> list[tuple[int, int, sparse.csc_array]]:
        """Views, made once: on small models making them takes longer than the product."""
        return [(low, high, rows.T) for low, high, rows in self._blocks]

    @cached_property
    def slots(self) -> int:
        """The largest number of successors of a state."""
        return max(int(np.diff(rows.indptr).max(initial=0)) for _, _, rows in self._blocks)

    def forward(self, vector: Float[np.ndarray, " s"], serial: bool = False) -> Float[np.ndarray, " s"]:
        """``P x``: the expectation of ``x`` after one step."""
        return _joined(in_threads(lambda block: block[2] @ vector, self._blocks, serial=serial))

    def backward(self, vector: Float[np.ndarray, " s"], serial: bool = False) -> Float[np.ndarray, " s"]:
        """``P^T x``: where a distribution ``x`` over states is after one step."""
        parts = in_threads(lambda block: block[2] @ vector[block[0] : block[1]], self._transposed, serial=serial)
        for part in parts[1:]:
            parts[0] += part
        return parts[0]

    def arrivals(self) -> Int[np.ndarray, " s"]:
        """From how many states each state is reached."""
        count = _shape(self._blocks[0][2])[1]
        return np.sum([np.bincount(rows.indices, minlength=count) for _, _, rows in self._blocks], axis=0)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@final
class SlotKernel(AbstractSlots):
    """Transitions of ``S`` states and ``A`` actions as a canonical ``(S * A, S)`` sparse matrix.

    ``allowed`` is None where every action may be taken in every state; rows of other actions are empty.
    """

    def __init__(
        self, matrix: sparse.csr_array, n_actions: int, allowed: Bool[np.ndarray, "s a"] | None = None
    ) -> None:
        """Keep views, in blocks of rows."""
        self.matrix, self.n_actions, self.allowed = matrix, n_actions, allowed
        self.n_states = _shape(matrix)[1]
        self.row_length = int(np.diff(matrix.indptr).max(initial=0))
        self._blocks = _row_blocks(matrix, max(1, -(-matrix.nnz // _BLOCK_ENTRIES)), n_actions)

    def slots(self) -> tuple[Int[np.ndarray, "s a k"], Float[np.ndarray, "s a k"]]:
        """Successors and probabilities as arrays with one entry a slot, rows padded with probability 0."""
        lengths = np.diff(self.matrix.indptr)
        width = max(1, self.row_length)
        memory.require(2 * SLOT * len(lengths) * width, f"a table of {len(lengths)} rows of {width} slots", CURE)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        places = np.arange(self.matrix.nnz) - np.repeat(self.matrix.indptr[:-1], lengths)
        successors = np.zeros((len(lengths), width), np.int32)
        probabilities = np.zeros((len(lengths), width))
        successors[rows, places], probabilities[rows, places] = self.matrix.indices, self.matrix.data
        shape = (self.n_states, self.n_actions, width)
        return successors.reshape(shape), probabilities.reshape(shape)

    def backup(self, values: Float[np.ndarray, " s"]) -> Float[np.ndarray, "s a"]:
        """Return ``sum_s' P(s' | s, a) values(s')`` for every state and action."""
        return _joined(in_threads(lambda block: block[2] @ values, self._blocks)).reshape(self.n_states, self.n_actions)

    def improve(
        self, reward: Float[np.ndarray, "s a"], values: Float[np.ndarray, " s"], discount: float
    ) -> Improvement:
        """``TU(s) = max_a reward(s, a) + discount * (P U)(s, a)`` and the first action that attains it."""
        n = self.n_actions

        def best(block: tuple[int, int, sparse.csr_array]) -> tuple[np.ndarray, np.ndarray]:
            states = slice(block[0] // n, block[1] // n)
            gains = (block[2] @ values).reshape(-1, n)
            gains *= discount
            gains += reward[states]
            if self.allowed is not None:
                gains[~self.allowed[states]] = -np.inf
            return _row_maximum(gains)

        parts = in_threads(best, self._blocks)
        return Improvement(*(_joined(list(column)) for column in zip(*parts, strict=True)))

    def chain(self, policy: Int[np.ndarray, " s"] | Float[np.ndarray, "s a"]) -> Chain:
        """Select the chain of a policy: an action for each state, or probabilities ``(S, A)``."""
        count = (os.cpu_count() or 1) if self.matrix.nnz // self.n_actions >= _SERIAL_ENTRIES else 1
        if policy.ndim == 1:
            rows = np.arange(self.n_states, dtype=np.int64) * self.n_actions + policy
            edges = np.linspace(0, self.n_states, count + 1).astype(int)
            spans = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
            return Chain(in_threads(lambda span: (*span, self.matrix[rows[span[0] : span[1]]]), spans))
        states, actions = np.nonzero(policy)
        columns, shape = states * self.n_actions + actions, (self.n_states, self.n_states * self.n_actions)
        mixing = sparse.csr_array((policy[states, actions], (states, columns)), shape=shape)
        return Chain(_row_blocks(sparse.csr_array(mixing @ self.matrix), count))


def choose(
    table: Float[np.ndarray, "s a"], policy: Int[np.ndarray, " s"] | Float[np.ndarray, "s a"]
) -> Float[np.ndarray, " s"]:
    """``sum_a policy(a | s) table(s, a)``: a reward along a policy."""
    if policy.ndim == 1:
        return table[np.arange(len(policy)), policy]
    return np.einsum("sa,sa->s", table, policy)


def _row_maximum(gains: Float[np.ndarray, "s a"]) -> tuple[Int[np.ndarray, " s"], Float[np.ndarray, " s"]]:
    """``argmax`` and ``max`` of each row, an action at a time: NumPy's own is slow along a short last axis.

    Without branches, which cost twenty times as much where it is a matter of chance which action is better.
    """
    columns = np.ascontiguousarray(gains.T)
    best, action = columns[0], np.zeros(len(gains), np.int32)
    for candidate, gain in enumerate(columns[1:], 1):
        action = np.maximum(action, (gain > best) * np.int32(candidate))
        best = np.maximum(best, gain)
    return action, best
