"""Dense models on the host: LAPACK answers first, without compiling; the single-objective solve is policy iteration.

Policy iteration is the limit of the ARNPG step as alpha goes to 0: with ``eta = (1 - gamma) / alpha`` a micro step is
``pi' ~ anchor * exp((<G, r> + gamma P V) / alpha)``; for vanishing ``alpha`` it takes the greedy action, and ties keep
the anchor's. Every policy evaluated on the way is a point of the achievable region, so none is wasted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np
import scipy.linalg

from arnpg.tabular.certificate import UNIT, single_objective_bound
from arnpg.tabular.kernel import AbstractKernel, Ascent, Enough, Point, Policy
from arnpg.tabular.mdp import MDP

__all__ = ["DenseKernel"]

TIE = 1e-12
VALUE_NOISE = 1e-14  # rounding of values, relative, for each unit of horizon


@final
class DenseKernel(AbstractKernel):
    """``P`` as an array ``(S, A, S)``; the detail of a point are its value functions ``(m, S)``."""

    def __init__(self, mdp: MDP) -> None:
        """Keep views, no copies, of a dense model; a sparse one is spread out, so it must be small."""
        self.mdp = mdp
        table = mdp.transitions if isinstance(mdp.transitions, np.ndarray) else mdp.transitions.toarray()
        self._transitions = table.reshape(mdp.states, mdp.actions, mdp.states)
        self.row_length = mdp.states
        self.noise = VALUE_NOISE * min(self.horizon, 1e4)

    def evaluate(self, policy: Policy, guess: np.ndarray | None = None) -> Point:
        """``V_i = (I - gamma P_pi)^{-1} r_i`` for all objectives by one factorisation."""
        del guess
        state_values = self._solve(policy, self._under(policy, self.mdp.rewards).T, transpose=False).T
        return Point(policy, state_values @ self.mdp.initial, state_values)

    def error(self, point: Point) -> np.ndarray:
        """A value lies within ``|r_pi + gamma P_pi U - U| / (1 - gamma)`` of ``U``."""
        mdp, guess = self.mdp, point.detail
        residual = self._under(point.policy, mdp.rewards) + mdp.discount * guess @ self._chain(point.policy).T - guess
        largest = np.abs(guess).max(axis=1)
        sizes = np.abs(mdp.rewards).max(axis=(1, 2)) + largest
        rounding = UNIT * (self.row_length + mdp.actions + 4) * sizes
        return (np.abs(residual).max(axis=1) + rounding) * self.horizon + UNIT * mdp.states * largest

    def bellman(self, reward: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The best one-step look-ahead in each state."""
        return self._backup(reward, values).max(axis=1)

    def occupancy(self, point: Point) -> np.ndarray:
        """One solve with the transpose."""
        start = (1 - self.mdp.discount) * self.mdp.initial
        return np.maximum(self._solve(point.policy, start, transpose=True), 0.0)

    def ascend(self, weights: np.ndarray, start: Point, enough: Enough) -> Iterator[Ascent]:
        """Policy iteration from ``start``, which comes first; always to the end, where the bound is tight."""
        del enough
        reward = np.tensordot(weights, self.mdp.rewards, 1)
        point = start
        while True:
            guess = weights @ point.detail
            backed_up = self._backup(reward, guess)
            yield Ascent(point, single_objective_bound(self, weights, guess, backed_up.max(axis=1)))
            improved = _greedy(backed_up, point.policy)
            if improved is None:
                return
            candidate = self.evaluate(improved)
            noise = 1e-13 * float(np.abs(guess).max()) * self.horizon
            if point.policy.ndim == 1 and weights @ candidate.values < weights @ point.values - noise:
                return  # beyond rounding a policy that looks worse is worse, and iteration would cycle
            point = candidate

    def _backup(self, reward: np.ndarray, values: np.ndarray) -> np.ndarray:
        """``r + gamma P U``, ``(S, A)``; minus infinity where an action is not allowed."""
        backed_up = (self._transitions.reshape(-1, self.mdp.states) @ values).reshape(reward.shape)
        backed_up *= self.mdp.discount
        backed_up += reward
        return backed_up if self.mdp.allowed is None else np.where(self.mdp.allowed, backed_up, -np.inf)

    def _under(self, policy: Policy, table: np.ndarray) -> np.ndarray:
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
        system = self._chain(policy)
        system *= -self.mdp.discount
        system.flat[:: self.mdp.states + 1] += 1.0
        return system

    def _chain(self, policy: Policy) -> np.ndarray:
        """``P_pi``, a fresh array."""
        if policy.ndim == 1:
            return self._transitions[np.arange(len(policy)), policy]
        return np.matmul(policy[:, None, :], self._transitions)[:, 0]


def _greedy(backed_up: np.ndarray, policy: np.ndarray) -> np.ndarray | None:
    """The greedy actions, keeping the present one where nothing is better; none if nothing changes."""
    best = backed_up.argmax(axis=1)
    if policy.ndim == 2:
        return best
    states = np.arange(len(best))
    margin = TIE * (1 + np.abs(backed_up[states, best]).max())
    better = backed_up[states, best] > backed_up[states, policy] + margin
    if not better.any():
        return None
    return np.where(better, best, policy)
