"""A Markov decision process with several rewards, checked once and never changed.

``(S, A, P, rho, gamma, r_{1:m})`` of Section 2. One axis order everywhere: transitions ``(state, action, next state)``,
rewards ``(objective, state, action)``, or a mapping from the objective's name to ``(state, action)``.

Transitions are a dense array, or a sparse matrix with one row for each state and action; everything else is the same,
and so is everything that is done with a model.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Self, cast, final

import numpy as np
from scipy import sparse

from arnpg.errors import ModelError
from arnpg.tabular import assembly, checks, sparse_checks
from arnpg.tabular.lattice import Outcomes, lattice_parts
from arnpg.tabular.storm import read_prism

__all__ = ["MDP"]


@final
class MDP:
    """A known model.

    Args:
        transitions: ``(S, A, S)``, ``transitions[s, a, t]`` the probability of moving from ``s`` to ``t`` under ``a``;
            or a SciPy sparse matrix ``(S*A, S)`` with row ``s * A + a`` for each state and action.
        rewards: a mapping from names to ``(S, A)`` arrays, or one ``(m, S, A)`` array (then ``names`` may be given).
        discount: ``gamma`` in ``[0, 1)``.
        initial: ``rho``, ``(S,)``; uniform where it is left out.
        names: the objectives' names, for an array of rewards.
        allowed: ``(S, A)`` booleans, the actions that each state has; what is given for others is ignored.
        normalize: divide rows of ``transitions`` and ``initial`` by their sums instead of refusing them.
    """

    discount: float
    names: tuple[str, ...]
    allowed: np.ndarray | None
    labels: tuple[Hashable, ...] | None  # the user's own names of the states, from ``from_function``
    notes: tuple[str, ...]
    row_sums: tuple[float, float]  # of the transitions: at most one, at least one; rounding included
    reward_sizes: np.ndarray  # max |r_i|, (m,)
    reward_ranges: np.ndarray  # max r_i - min r_i, (m,)

    def __init__(
        self,
        transitions: Any,
        rewards: Mapping[str, Any] | Any,
        *,
        discount: float,
        initial: Any = None,
        names: Sequence[str] | None = None,
        allowed: Any = None,
        normalize: bool = False,
    ) -> None:
        """Check everything, copy it, and freeze it."""
        notes: list[str] = []
        check = sparse_checks.transitions if sparse.issparse(transitions) else checks.transitions
        kernel, mask = check(transitions, allowed, normalize, notes)
        sizes = cast(tuple[int, ...], kernel.shape)
        states = sizes[-1]
        shape = (states, sizes[0] // states if len(sizes) == 2 else sizes[1])
        table, labels = checks.rewards(rewards, names, mask, shape, notes)
        start = checks.initial(initial, states, normalize)
        self.discount = checks.discount(discount, notes)
        self.names, self.notes, self.labels = labels, tuple(notes), None
        self.reward_sizes, self.reward_ranges = _reward_extent(table, mask)
        self.row_sums = sparse_checks.row_sums(kernel, mask)
        parts = (kernel,) if isinstance(kernel, np.ndarray) else (kernel.data, kernel.indices, kernel.indptr)
        for array in (*parts, table, start, *([] if mask is None else [mask])):
            array.flags.writeable = False
        self._transitions, self._rewards, self._initial, self.allowed = kernel, table, start, mask

    # Each reading is an array object of its own: JAX remembers an array object in the precision that first read it,
    # and a model is read by float32 programs of the user's and by ours in float64.

    @property
    def transitions(self) -> np.ndarray | sparse.csr_array:
        """``P``: ``(S, A, S)``, or sparse ``(S*A, S)``."""
        return self._transitions.view() if isinstance(self._transitions, np.ndarray) else self._transitions

    @property
    def rewards(self) -> np.ndarray:
        """``r``: ``(m, S, A)``."""
        return self._rewards.view()

    @property
    def initial(self) -> np.ndarray:
        """``rho``: ``(S,)``."""
        return self._initial.view()

    @property
    def states(self) -> int:
        """``S``, the number of states."""
        return self._rewards.shape[1]

    @property
    def actions(self) -> int:
        """``A``, the number of actions."""
        return self._rewards.shape[2]

    @property
    def objectives(self) -> int:
        """``m``, the number of rewards."""
        return self._rewards.shape[0]

    @property
    def is_sparse(self) -> bool:
        """Whether ``transitions`` is a sparse matrix ``(S*A, S)``."""
        return not isinstance(self._transitions, np.ndarray)

    @property
    def nbytes(self) -> int:
        """The memory that the model takes."""
        kernel = self.transitions
        parts = [kernel] if isinstance(kernel, np.ndarray) else [kernel.data, kernel.indices, kernel.indptr]
        return sum(array.nbytes for array in (*parts, self.rewards, self.initial))

    @classmethod
    def from_action_matrices(cls, matrices: Any, rewards: Any, **keywords: Any) -> Self:
        """A model from one ``(S, S)`` matrix for each action, shape ``(A, S, S)``; the rest as in ``MDP``."""
        stacked = checks.numbers("matrices", matrices)
        if stacked.ndim != 3:
            raise ModelError(f"matrices must have shape (A, S, S), got {stacked.shape}; pass one matrix per action.")
        return cls(np.swapaxes(stacked, 0, 1), rewards, **keywords)

    @classmethod
    def from_sparse(cls, matrices: Any, rewards: Any, **keywords: Any) -> Self:
        """A sparse model from one SciPy sparse ``(S, S)`` matrix for each action, or from one ``(S*A, S)`` matrix.

        Duplicates are added, explicit zeros dropped, indices sorted; the rest as in ``MDP``.
        """
        return cls(assembly.from_matrices(matrices), rewards, **keywords)

    @classmethod
    def from_slots(cls, successors: Any, probabilities: Any, rewards: Any, **keywords: Any) -> Self:
        """A sparse model from the successors of every state and action, both ``(S, A, K)``.

        ``successors[s, a, k]`` is reached with ``probabilities[s, a, k]``; unused slots have probability 0.
        """
        return cls(assembly.from_slots(successors, probabilities), rewards, **keywords)

    @classmethod
    def from_triples(
        cls, states: Any, actions: Any, successors: Any, probabilities: Any, rewards: Any, **keywords: Any
    ) -> Self:
        """A sparse model from a list of transitions: four arrays of one length. ``rewards`` gives ``S`` and ``A``.

        A transition that is listed twice has the sum of its probabilities.
        """
        shape = assembly.table_shape(rewards)
        return cls(assembly.from_triples(states, actions, successors, probabilities, shape), rewards, **keywords)

    @classmethod
    def from_function(
        cls,
        function: Callable[[Any, Any], Any],
        start: Mapping[Any, float] | Sequence[Any],
        actions: Sequence[Any],
        *,
        discount: float,
        max_states: int = 10_000_000,
    ) -> Self:
        """A sparse model of every state that can be reached, found by calling ``function(state, action)``.

        It returns ``(successors, probabilities, rewards)``: two sequences of one length and a mapping from names to
        numbers; or ``None`` where the action is not allowed. States may be anything hashable; ``labels`` keeps them.

        Args:
            function: the model.
            start: probabilities of starting states, or a sequence of equally likely ones.
            actions: all actions, in order.
            discount: ``gamma`` in ``[0, 1)``.
            max_states: refuse to enumerate more.
        """
        found = assembly.enumerate_states(function, start, actions, max_states)
        mdp = cls(found.matrix, found.rewards, discount=discount, initial=found.initial, allowed=found.allowed)
        mdp.labels = found.labels
        return mdp

    @classmethod
    def from_lattice(
        cls,
        shape: Sequence[int],
        actions: int,
        function: Callable[[tuple[np.ndarray, ...], int], Outcomes],
        *,
        discount: float,
        start: Sequence[int] | None = None,
    ) -> Self:
        """A sparse model whose states are the points of a box, such as queue lengths; a million states in seconds.

        ``function(state, action)`` is called once for each action with arrays of all states' coordinates, and returns
        ``arnpg.Outcomes``. State ``(i, j, ...)`` has the index ``numpy.ravel_multi_index((i, j, ...), shape)``.

        Args:
            shape: how many values each coordinate has.
            actions: how many actions there are.
            function: the model.
            discount: ``gamma`` in ``[0, 1)``.
            start: where to start; anywhere, uniformly, where it is left out.
        """
        matrix, rewards, allowed, initial = lattice_parts(shape, actions, function, start)
        return cls(matrix, rewards, discount=discount, initial=initial, allowed=allowed)

    @classmethod
    def from_prism(
        cls,
        path: str | os.PathLike,
        constants: Mapping[str, Any] | None = None,
        *,
        discount: float,
        rewards: Sequence[str] | None = None,
    ) -> Self:
        """A sparse model from a file in PRISM's language or in JANI, built by Storm (``pip install "arnpg[storm]"``).

        Args:
            path: the file; JANI where it ends with ``.jani``.
            constants: values of the constants that the file leaves open.
            discount: ``gamma``; the file has none.
            rewards: the reward structures to keep as objectives, all named ones where it is left out.
        """
        matrix, tables, allowed, initial = read_prism(path, constants, rewards)
        return cls(matrix, tables, discount=discount, initial=initial, allowed=allowed)

    def __repr__(self) -> str:
        """One line with the sizes."""
        return (
            f"MDP(states={self.states}, actions={self.actions}, discount={self.discount:g}, "
            f"objectives=[{', '.join(self.names)}]{', sparse' if self.is_sparse else ''})"
        )


def _reward_extent(table: np.ndarray, mask: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """``max |r_i|`` and ``max r_i - min r_i`` over allowed actions."""
    used = table.reshape(len(table), -1) if mask is None else table[:, mask]
    most, least = used.max(axis=1), used.min(axis=1)
    return np.maximum(most, -least), most - least
