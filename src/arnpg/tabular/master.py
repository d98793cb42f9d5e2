"""The corrective master: the best mixture of the value vectors seen so far, and the prices it implies.

With the points as columns of ``V`` (``m x n``), it solves

    max_w  F(V w)   subject to   C V w >= b,   w in the simplex

by a primal-dual interior-point method on ``n`` variables, a few dozen at most. Its multipliers are the next ascent
direction. They are taken close to the central path, not at a vertex, which keeps column generation from oscillating;
a looser ``tolerance`` stays further inside. A minimum ``F`` enters as ``max z`` with ``z <= (R V w - e)_j``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from arnpg.objectives import Criterion, Minimum

__all__ = ["Mixture", "best_mixture"]

MAX_ITERATIONS = 80
TO_BOUNDARY = 0.99


class Mixture(NamedTuple):
    """Weights of the points, the mixture's values, the constraints' multipliers, and the weights of a minimum."""

    weights: np.ndarray
    values: np.ndarray
    multipliers: np.ndarray
    worst_case: np.ndarray


class _Problem(NamedTuple):
    """``max scale * F`` over ``x = (w, z)`` with ``A x >= a``, in units where values are of order one."""

    criterion: Criterion
    points: np.ndarray  # (m, n)
    has_level: bool
    rows: np.ndarray  # A: (p, n + has_level); the constraints, then the parts of a minimum
    offsets: np.ndarray  # a: (p,)
    units: np.ndarray  # row units: (p,)
    scale: float

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Of ``-scale * F``."""
        if self.has_level:
            return np.concatenate([np.zeros(len(x) - 1), [-self.scale]])
        values = self.points @ x
        return -self.scale * (np.asarray(self.criterion.objective.gradient(values)) @ self.points)

    def hessian(self, x: np.ndarray) -> np.ndarray:
        """Of ``-scale * F``."""
        if self.has_level:
            return np.zeros((len(x), len(x)))
        curvature = np.asarray(self.criterion.objective.hessian(self.points @ x))
        return -self.scale * (self.points.T @ curvature @ self.points)

    def defined(self, x: np.ndarray) -> bool:
        """Whether ``F`` is defined at the mixture."""
        if self.has_level:
            return True
        rows, offsets = self.criterion.objective.domain(len(self.points))
        return bool((rows @ (self.points @ x) + offsets > 0).all())


class _Iterate(NamedTuple):
    x: np.ndarray
    slack: np.ndarray  # s = A x - a at convergence
    reduced: np.ndarray  # u, the multipliers of w >= 0
    prices: np.ndarray  # y, the multipliers of A x >= a
    level: float  # nu, the multiplier of 1^T w = 1


def best_mixture(
    criterion: Criterion, points: np.ndarray, tolerance: float = 1e-10, start: np.ndarray | None = None
) -> Mixture:
    """The best mixture of ``points`` ``(m, n)``.

    ``tolerance`` is relative to the spread of the objective over the points; ``start`` are weights at which ``F`` is
    defined (default: equal weights).
    """
    problem = _formulate(criterion, points)
    count = points.shape[1]
    weights = np.full(count, 1 / count) if start is None else start
    at = _initial(problem, weights)
    for _ in range(MAX_ITERATIONS):
        at, done = _newton_step(problem, at, tolerance)
        if done:
            break
    weights = np.maximum(at.x[:count], 0.0)
    weights /= weights.sum()
    prices = at.prices / problem.units / problem.scale
    constraints = len(criterion.thresholds)
    worst = prices[constraints:]
    return Mixture(weights, points @ weights, prices[:constraints], worst / max(worst.sum(), 1e-300))


def _formulate(criterion: Criterion, points: np.ndarray) -> _Problem:
    rows, offsets = np.asarray(criterion.rows) @ points, np.asarray(criterion.thresholds)
    objective = criterion.objective
    has_level = isinstance(objective, Minimum)
    if has_level:
        parts = np.asarray(objective.rows) @ points
        rows, offsets = np.vstack([rows, parts]), np.concatenate([offsets, objective.offsets])
        spread = float(np.ptp(parts - np.asarray(objective.offsets)[:, None]))
    else:
        middle = points.mean(axis=1)
        spread = float(np.ptp(np.asarray(objective.gradient(middle)) @ points)) if _is_defined(objective, middle) else 1.0
    units = np.maximum(np.abs(rows - offsets[:, None]).max(axis=1, initial=0.0), 1e-12)
    level_scale = spread if spread > 0 else 1.0
    if has_level:
        constraints = len(criterion.thresholds)
        units[constraints:] = level_scale
        column = np.where(np.arange(len(rows)) < constraints, 0.0, -1.0)
        rows = np.hstack([rows, column[:, None]])
    return _Problem(
        criterion, points, has_level, rows / units[:, None], offsets / units, units, 1 / level_scale
    )


def _is_defined(objective: object, values: np.ndarray) -> bool:
    rows, offsets = objective.domain(len(values))  # type: ignore[attr-defined]
    return bool((rows @ values + offsets > 0).all())


def _initial(problem: _Problem, weights: np.ndarray) -> _Iterate:
    weights = 0.9 * weights + 0.1 / len(weights)
    x = weights
    if problem.has_level:
        constraints = len(problem.criterion.thresholds)
        parts = problem.rows[constraints:, :-1] @ weights - problem.offsets[constraints:]
        unit = problem.units[-1]
        x = np.append(weights, (parts.min() - 0.5) * unit)
    slack = np.maximum(problem.rows @ x - problem.offsets, 1e-2)
    return _Iterate(x, slack, 0.1 / weights / len(weights), 0.1 / slack, 0.0)


def _newton_step(problem: _Problem, at: _Iterate, tolerance: float) -> tuple[_Iterate, bool]:
    """One step of the primal-dual method towards a fifth of the present complementarity, or less if steps are long."""
    count = problem.points.shape[1]
    x, slack, reduced, prices, level = at
    weights = x[:count]
    ones = np.zeros(len(x))
    ones[:count] = 1.0
    pad = np.zeros(len(x) - count)
    complementarity = float(weights @ reduced + slack @ prices)
    target = 0.1 * complementarity / (count + len(slack))
    primal = problem.rows @ x - problem.offsets - slack
    dual = problem.gradient(x) + level * ones - problem.rows.T @ prices - np.concatenate([reduced, pad])
    if complementarity < tolerance and np.abs(primal).max(initial=0.0) < 1e-9 and np.abs(dual).max() < max(tolerance, 1e-9):
        return at, True
    ratio = prices / slack
    system = np.empty((len(x) + 1, len(x) + 1))
    system[:-1, :-1] = problem.hessian(x) + (problem.rows.T * ratio) @ problem.rows
    system[np.arange(count), np.arange(count)] += reduced / weights
    system[-1, :-1] = system[:-1, -1] = ones
    system[-1, -1] = 0.0
    right = np.empty(len(x) + 1)
    right[:-1] = -dual + np.concatenate([target / weights - reduced, pad])
    right[:-1] += problem.rows.T @ (target / slack - prices - ratio * primal)
    right[-1] = 1 - weights.sum()
    move = _solve(system, right)
    moves = _moves(problem, at, move, target, primal)
    return _advance(problem, at, moves), False


def _solve(system: np.ndarray, right: np.ndarray) -> np.ndarray:
    """A KKT solve that survives a singular system: repeated points make the Hessian block so near the end."""
    try:
        return np.linalg.solve(system, right)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(system, right, rcond=None)[0]


def _moves(problem: _Problem, at: _Iterate, move: np.ndarray, target: float, primal: np.ndarray) -> _Iterate:
    count = problem.points.shape[1]
    step = move[:-1]
    slack_step = problem.rows @ step + primal
    price_step = target / at.slack - at.prices - at.prices / at.slack * slack_step
    weights = at.x[:count]
    reduced_step = target / weights - at.reduced - at.reduced / weights * step[:count]
    return _Iterate(step, slack_step, reduced_step, price_step, float(move[-1]))


def _advance(problem: _Problem, at: _Iterate, moves: _Iterate) -> _Iterate:
    """As far as positivity and the domain of ``F`` allow."""
    count = problem.points.shape[1]
    primal = min(_room(at.x[:count], moves.x[:count]), _room(at.slack, moves.slack))
    dual = min(_room(at.reduced, moves.reduced), _room(at.prices, moves.prices))
    if not problem.has_level:
        primal = dual = min(primal, dual)
        while primal > 1e-12 and not problem.defined(at.x + primal * moves.x):
            primal *= 0.5
    return _Iterate(
        at.x + primal * moves.x,
        at.slack + primal * moves.slack,
        at.reduced + dual * moves.reduced,
        at.prices + dual * moves.prices,
        at.level + dual * moves.level,
    )


def _room(at: np.ndarray, move: np.ndarray) -> float:
    shrinking = move < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, TO_BOUNDARY * float((-at[shrinking] / move[shrinking]).min()))
