"""A Markov decision process with several rewards, given as arrays, checked once and never changed.

``(S, A, P, rho, gamma, r_{1:m})`` of Section 2. One axis order everywhere: transitions ``(state, action, next state)``,
rewards ``(objective, state, action)``, or a mapping from the objective's name to ``(state, action)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from arnpg.errors import ModelError
from arnpg.tabular import checks

__all__ = ["MDP"]


@final
class MDP:
    """A known model.

    Args:
        transitions: ``(S, A, S)``, ``transitions[s, a, t]`` the probability of moving from ``s`` to ``t`` under ``a``.
        rewards: a mapping from names to ``(S, A)`` arrays, or one ``(m, S, A)`` array (then ``names`` may be given).
        discount: ``gamma`` in ``[0, 1)``.
        initial: ``rho``, ``(S,)``; uniform where it is left out.
        names: the objectives' names, for an array of rewards.
        normalize: divide rows of ``transitions`` and ``initial`` by their sums instead of refusing them.
    """

    transitions: np.ndarray
    rewards: np.ndarray
    initial: np.ndarray
    discount: float
    names: tuple[str, ...]
    notes: tuple[str, ...]
    largest_row_sum: float  # of the transitions, at least one; rounding included

    def __init__(
        self,
        transitions: Any,
        rewards: Mapping[str, Any] | Any,
        *,
        discount: float,
        initial: Any = None,
        names: Sequence[str] | None = None,
        normalize: bool = False,
    ) -> None:
        """Check everything, copy it, and freeze it."""
        notes: list[str] = []
        kernel = checks.transitions(transitions, normalize, notes)
        states, actions = kernel.shape[:2]
        table, labels = checks.rewards(rewards, names, (states, actions), notes)
        start = checks.initial(initial, states, normalize)
        self.discount = checks.discount(discount, notes)
        self.names = labels
        self.notes = tuple(notes)
        for array in (kernel, table, start):
            array.flags.writeable = False
        self.transitions, self.rewards, self.initial = kernel, table, start
        self.largest_row_sum = max(1.0, float(np.einsum("sat->sa", kernel).max())) + states * 2.0**-53

    @property
    def states(self) -> int:
        """``S``, the number of states."""
        return self.transitions.shape[0]

    @property
    def actions(self) -> int:
        """``A``, the number of actions."""
        return self.transitions.shape[1]

    @property
    def objectives(self) -> int:
        """``m``, the number of rewards."""
        return self.rewards.shape[0]

    @classmethod
    def from_action_matrices(cls, matrices: Any, rewards: Any, **keywords: Any) -> MDP:
        """A model from one ``(S, S)`` matrix for each action, shape ``(A, S, S)``; the rest as in ``MDP``."""
        stacked = checks.numbers("matrices", matrices)
        if stacked.ndim != 3:
            raise ModelError(f"matrices must have shape (A, S, S), got {stacked.shape}; pass one matrix per action.")
        return cls(np.swapaxes(stacked, 0, 1), rewards, **keywords)

    def __repr__(self) -> str:
        """One line with the sizes."""
        return (
            f"MDP(states={self.states}, actions={self.actions}, discount={self.discount:g}, "
            f"objectives=[{', '.join(self.names)}])"
        )
