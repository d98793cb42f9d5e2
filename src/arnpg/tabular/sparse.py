"""Sparse models at scale: inexact policy iteration for one reward, one adjoint solve for all values of a policy.

The occupancy ``d = (1 - gamma) rho + gamma P_pi^T d`` of a policy gives every objective at once, by ``V_i = <d, r_i> /
(1 - gamma)``; and since occupancies are what is averaged, that of the mixed policy is known before it is evaluated.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np
from scipy import sparse

from arnpg.tabular.certificate import UNIT, single_objective_bound
from arnpg.tabular.kernel import AbstractKernel, Ascent, Enough, Point, Policy
from arnpg.tabular.mdp import MDP
from arnpg.tabular.slots import AbstractSlots, SlotKernel, choose
from arnpg.tabular.sparse_evaluation import Solver, occupancy
from arnpg.tabular.sparse_oracle import policy_iteration

__all__ = ["SparseKernel"]

EXACT, COLUMN = 1e-12, 1e-9  # the error of values, relative to the range that rewards allow: of answers, of columns
REMEMBERED = 6  # value functions of the last ascents, to guess the next one


@final
class SparseKernel(AbstractKernel):
    """``P`` as a sparse matrix ``(S*A, S)``; the detail of a point is its occupancy ``(S,)``.

    It remembers the last value functions and the solver that did best: they make it quicker, never wrong.
    """

    def __init__(self, mdp: MDP, devices: Sequence[Any] | None = None) -> None:
        """Keep views of a sparse model, or spread its transitions over devices."""
        self.mdp = mdp
        host = SlotKernel(sparse.csr_array(mdp.transitions), mdp.actions, mdp.allowed)
        self.slots: AbstractSlots = host
        self.row_length = host.row_length
        self.noise = 100 * EXACT
        self._seen: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=REMEMBERED)
        self._solver: Solver = "auto"
        if devices is not None:
            from arnpg.tabular.sharded import ShardedSlots

            self.slots = ShardedSlots(host, devices)

    def evaluate(self, policy: Policy, guess: np.ndarray | None = None) -> Point:
        """All values from one adjoint solve, as exact as rounding lets it be."""
        return self._point(policy, guess, EXACT)

    def _point(self, policy: Policy, guess: np.ndarray | None, error: float) -> Point:
        mdp = self.mdp
        solved = occupancy(
            self.slots.chain(policy),
            mdp.discount,
            mdp.initial,
            guess=guess,
            tolerance=error * (1 - mdp.discount),
            solver=self._solver,
        )
        visits = np.maximum(solved.solution, 0.0)
        return Point(policy, self._values(policy, visits), visits)

    def _values(self, policy: Policy, visits: np.ndarray) -> np.ndarray:
        """``<d, r_i> / (1 - gamma)``."""
        earned = [visits @ choose(table, policy) for table in self.mdp.rewards]
        return np.array(earned) / (1 - self.mdp.discount)

    def error(self, point: Point) -> np.ndarray:
        """``|<e, V_i>| / (1 - gamma)`` with ``e`` what the occupancy's equation leaves over.

        ``V_i`` is known to lie in an interval of length ``(max r_i - min r_i) / (1 - gamma)``, and ``e`` sums to
        nearly nothing.
        """
        mdp, visits = self.mdp, point.detail
        chain = self.slots.chain(point.policy)
        arrived = chain.backward(visits)
        residual = (1 - mdp.discount) * mdp.initial + mdp.discount * arrived - visits
        terms = chain.arrivals() + mdp.actions + 4
        rounding = UNIT * float(terms @ (arrived + visits + mdp.initial))
        spread = 0.5 * mdp.reward_ranges * (float(np.abs(residual).sum()) + rounding)
        level = mdp.reward_sizes * (abs(float(residual.sum())) + rounding)
        summing = UNIT * (mdp.states + mdp.actions + 2) * mdp.reward_sizes * float(visits.sum())
        return ((spread + level) * self.horizon + summing) / (1 - mdp.discount)

    def bellman(self, reward: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The best one-step look-ahead in each state."""
        return self.slots.improve(reward, values, self.mdp.discount).values

    def occupancy(self, point: Point) -> np.ndarray:
        """It is the point's detail."""
        return point.detail

    def ascend(self, weights: np.ndarray, start: Point, enough: Enough) -> Iterator[Ascent]:
        """Inexact policy iteration from the value function that past weights suggest, until ``enough``."""
        mdp = self.mdp
        reward = np.tensordot(weights, mdp.rewards, 1)
        lowest, upper = -np.inf, np.inf
        for at in policy_iteration(self.slots, reward, mdp.discount, guess=self._guess(weights), solver=self._solver):
            upper = min(upper, single_objective_bound(self, weights, at.values, at.improved))
            lower = float(mdp.initial @ at.values) + (at.low - at.slack) / (1 - mdp.discount)
            lowest = max(lowest, lower)
            if at.final or enough(lower, upper):
                break
            yield Ascent(None, upper)
        self._solver = at.solver
        self._seen.append((weights, at.improved))
        promised = 1e-2 * (upper - lowest) / (float(np.abs(weights) @ mdp.reward_ranges) * self.horizon + 1e-300)
        yield Ascent(self._point(at.policy, start.detail, float(np.clip(promised, EXACT, COLUMN))), upper)

    def _guess(self, weights: np.ndarray) -> np.ndarray | None:
        """The combination of remembered value functions whose weights come nearest: near the end it is almost exact."""
        if not self._seen:
            return None
        past = np.array([seen for seen, _ in self._seen])
        shares = _combination(past, weights)
        guess = shares[0] * self._seen[0][1]
        for share, (_, values) in zip(shares[1:], list(self._seen)[1:], strict=True):
            guess += share * values
        return guess


def _combination(past: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Small shares ``c`` with ``sum_k c_k G_k`` near ``G``, the last first: regularised least squares."""
    last = past[-1]
    size = float(weights @ last) / max(float(last @ last), 1e-300)
    base = np.zeros(len(past))
    base[-1] = max(size, 0.0)
    missing = weights - base @ past
    scale = np.abs(past).max(axis=0) + np.abs(weights) + 1e-300
    normal = (past / scale) @ (past / scale).T
    penalty = 1e-4 * np.linalg.norm(missing / scale) ** 2 + 1e-14 * np.trace(normal)
    return base + np.linalg.solve(normal + penalty * np.eye(len(past)), (past / scale) @ (missing / scale))
