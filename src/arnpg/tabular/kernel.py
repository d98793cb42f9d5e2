"""Policy evaluation and one-step backups on a dense model, on the host: LAPACK answers first, without compiling."""

from __future__ import annotations

from typing import final

import numpy as np
import scipy.linalg

from arnpg.tabular.mdp import MDP

__all__ = ["DenseKernel"]

Policy = np.ndarray  # (S,) actions of a deterministic policy, or (S, A) probabilities


@final
class DenseKernel:
    """``P`` of a dense model and the linear algebra that the solver needs of it."""

    def __init__(self, mdp: MDP) -> None:
        """Keep views, no copies; ``horizon`` bounds ``sum_t gamma^t |P^t|``, rows that sum to 1 + 1e-8 included."""
        self.mdp = mdp
        self._rows = mdp.transitions.reshape(-1, mdp.states)
        self.row_length = mdp.states
        contraction = mdp.discount * mdp.largest_row_sum
        self.horizon = 1 / (1 - contraction) if contraction < 1 else np.inf

    def backup(self, values: np.ndarray) -> np.ndarray:
        """``(P U)(s, a) = sum_t P(t | s, a) U(t)`` for ``U`` of shape ``(S,)``, shape ``(S, A)``."""
        return (self._rows @ values).reshape(self.mdp.states, self.mdp.actions)

    def step(self, policy: Policy, values: np.ndarray) -> np.ndarray:
        """``P_pi U`` for ``U`` of shape ``(m, S)``."""
        return values @ self._under(policy).T

    def evaluate(self, policy: Policy, rewards: np.ndarray) -> np.ndarray:
        """``V = (I - gamma P_pi)^{-1} r_pi`` for rewards ``(m, S, A)``; shape ``(m, S)``."""
        return self._solve(policy, self.under(policy, rewards).T, transpose=False).T

    def occupancy(self, policy: Policy) -> np.ndarray:
        """``d(s) = (1 - gamma) sum_t gamma^t P(s_t = s)``, the state visitation of Section 2; shape ``(S,)``."""
        start = (1 - self.mdp.discount) * self.mdp.initial
        return np.maximum(self._solve(policy, start, transpose=True), 0.0)

    def under(self, policy: Policy, table: np.ndarray) -> np.ndarray:
        """``sum_a pi(a | s) f(s, a)`` for tables ``(m, S, A)``; shape ``(m, S)``."""
        if policy.ndim == 1:
            return table[:, np.arange(len(policy)), policy]
        return np.einsum("sa,msa->ms", policy, table)

    def _solve(self, policy: Policy, right: np.ndarray, transpose: bool) -> np.ndarray:
        """Factor the transpose, which is Fortran-ordered already, so that LAPACK copies nothing."""
        factors = scipy.linalg.lu_factor(self._system(policy).T, overwrite_a=True, check_finite=False)
        return scipy.linalg.lu_solve(factors, right, trans=0 if transpose else 1, check_finite=False)

    def _system(self, policy: Policy) -> np.ndarray:
        """``I - gamma P_pi``; strictly diagonally dominant, so never singular."""
        system = self._under(policy)
        system *= -self.mdp.discount
        system.flat[:: self.mdp.states + 1] += 1.0
        return system

    def _under(self, policy: Policy) -> np.ndarray:
        """``P_pi``, a fresh array."""
        transitions = self.mdp.transitions
        if policy.ndim == 1:
            return transitions[np.arange(len(policy)), policy]
        return np.matmul(policy[:, None, :], transitions)[:, 0]
