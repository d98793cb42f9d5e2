"""The corrective master: the best mixture of the value vectors seen so far, and the prices it implies.

With the points as columns of ``V`` (``m x n``), it solves

    max_w  F(V w)   subject to   C V w >= b,   w in the simplex

by Mehrotra's primal-dual interior-point method on ``n`` variables, a few dozen at most. Its multipliers are the next
ascent direction. They are taken close to the central path, not at a vertex, which keeps column generation from
oscillating; a looser ``tolerance`` stays further inside. A minimum ``F`` enters as ``max z``, ``z <= (R V w - e)_j``.

Since weights sum to one, every constraint is homogeneous, ``(C V - b 1^T) w >= 0``: no large threshold is ever
subtracted from a large value. Each row is measured in units of its own largest entry.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import get_lapack_funcs

from arnpg.errors import ObjectiveError
from arnpg.tabular.host import HostCriterion

__all__ = ["Mixture", "best_mixture"]

MAX_ITERATIONS = 80
TO_BOUNDARY = 0.99
FEASIBLE = 1e-13  # residual of the constraints, in units of their largest entry: a full step leaves rounding only
RESIDUAL = 1e-9  # of stationarity, in units where prices are of order one
NOISE = 1e-9  # a row whose entries are all below this share of what they were computed from is rounding
_FACTOR, _BACKSOLVE = get_lapack_funcs(("getrf", "getrs"), dtype=np.float64)


class Mixture(NamedTuple):
    """Weights of the points, the mixture's values, the constraints' multipliers, and the weights of a minimum."""

    weights: np.ndarray
    values: np.ndarray
    multipliers: np.ndarray
    worst_case: np.ndarray


class _Problem(NamedTuple):
    """``min -F / scale`` over ``x = (w, z)`` with ``G x >= 0``; the first ``n`` rows of ``G`` say ``w >= 0``."""

    criterion: HostCriterion
    points: np.ndarray  # (m, n)
    rows: np.ndarray  # G: (n + p, n + has_level); weights, then constraints, then the parts of a minimum
    units: np.ndarray  # of the last p rows
    scale: float
    has_level: bool

    def slope(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        """Gradient and Hessian of ``-F / scale``."""
        if self.has_level:
            gradient = np.zeros(len(x))
            gradient[-1] = -1.0
            return gradient, 0.0
        values = self.points @ x
        gradient, curvature = self.criterion.gradient(values), self.criterion.hessian(values)
        if not (np.isfinite(gradient).all() and np.isfinite(curvature).all()):
            raise ObjectiveError(f"the objective has no finite derivatives at values {_text(values)}.")
        factor = -1 / self.scale
        return factor * (gradient @ self.points), self.points.T @ (factor * curvature) @ self.points

    def defined(self, x: np.ndarray) -> bool:
        """Whether ``F`` is defined at the mixture."""
        return self.has_level or self.criterion.defined(self.points @ x)


class _Iterate(NamedTuple):
    x: np.ndarray
    slack: np.ndarray  # G x at convergence
    prices: np.ndarray  # of G x >= 0
    level: float  # the multiplier of 1^T w = 1


def best_mixture(
    criterion: HostCriterion, points: np.ndarray, tolerance: float = 1e-10, start: np.ndarray | None = None
) -> Mixture:
    """The best mixture of ``points`` ``(m, n)``.

    ``tolerance`` is relative to the spread of the objective over the points; ``start`` are weights at which ``F`` is
    defined (default: equal weights).
    """
    problem = _formulate(criterion, points)
    count = points.shape[1]
    at = _initial(problem, np.full(count, 1 / count) if start is None else start)
    for _ in range(MAX_ITERATIONS):
        following = _newton_step(problem, at, tolerance)
        if following is None:
            break
        at = following
    weights = np.maximum(at.x[:count], 0.0)
    weights /= weights.sum()
    prices = at.prices[count:] / problem.units * problem.scale
    constraints = len(criterion.thresholds)
    worst = prices[constraints:]
    return Mixture(weights, points @ weights, prices[:constraints], worst / max(worst.sum(), 1e-300))


def _formulate(criterion: HostCriterion, points: np.ndarray) -> _Problem:
    """Rows and scales of the problem over these points."""
    count = points.shape[1]
    limits = criterion.rows @ points - criterion.thresholds[:, None]
    sizes = np.abs(criterion.rows) @ np.abs(points).max(axis=1) + np.abs(criterion.thresholds)
    units = np.maximum(np.abs(limits).max(axis=1, initial=0.0), NOISE * sizes + 1e-300)
    if criterion.parts_rows is None:
        rows = np.vstack([np.eye(count), limits / units[:, None]])
        return _Problem(criterion, points, rows, units, _smooth_scale(criterion, points), has_level=False)
    parts = criterion.parts_rows @ points - criterion.parts_offsets[:, None]
    part_sizes = np.abs(criterion.parts_rows) @ np.abs(points).max(axis=1) + np.abs(criterion.parts_offsets)
    lowest, scale = _level_scale(parts, NOISE * part_sizes)
    parts -= lowest
    part_units = np.maximum(np.abs(parts).max(axis=1), scale)
    rows = np.zeros((count + len(limits) + len(parts), count + 1))
    rows[:count, :count] = np.eye(count)
    rows[count : count + len(limits), :count] = limits / units[:, None]
    rows[count + len(limits) :] = np.column_stack([parts, np.full(len(parts), -scale)]) / part_units[:, None]
    return _Problem(criterion, points, rows, np.concatenate([units, part_units]), scale, has_level=True)


def _smooth_scale(criterion: HostCriterion, points: np.ndarray) -> float:
    """The spread of the linearised objective over the points."""
    middle = points.mean(axis=1)
    if not criterion.defined(middle):
        return 1.0
    linear = criterion.gradient(middle) @ points
    spread = float(np.ptp(linear))
    return spread if spread > NOISE * float(np.abs(linear).max()) else 1.0


def _level_scale(parts: np.ndarray, noise: np.ndarray) -> tuple[float, float]:
    """``max_i min_j part_ji``, which the optimum exceeds, and by how much at most: ``min_j max_i part_ji`` less it.

    A part that varies by less than its ``noise`` is a constant, and its rounding no measure of anything.
    """
    lowest = float(parts.min(axis=0).max())
    spreads = np.abs(parts - lowest).max(axis=1)
    spreads = spreads[spreads > noise]
    if len(spreads) == 0:
        return lowest, 1.0
    return lowest, max(float(parts.max(axis=1).min()) - lowest, 1e-3 * float(spreads.min()))


def _initial(problem: _Problem, start: np.ndarray) -> _Iterate:
    """Inside the simplex, near ``start``, where ``F`` is defined."""
    count = len(start)
    share = 0.2
    while not problem.defined((1 - share) * start + share / count) and share > 1e-12:
        share *= 0.25
    x = (1 - share) * start + share / count
    if problem.has_level:
        x = np.append(x, 0.0)
        parts = problem.rows[count + len(problem.criterion.thresholds) :]
        x[-1] = float((parts @ x / -parts[:, -1]).min()) - 0.5
    slack = problem.rows @ x
    slack[count:] = np.maximum(slack[count:], 1e-2)
    prices = 0.1 / slack
    prices[:count] /= count
    return _Iterate(x, slack, prices, 0.0)


def _newton_step(problem: _Problem, at: _Iterate, tolerance: float) -> _Iterate | None:
    """One predictor-corrector step; none where the tolerance is reached.

    The corrector never aims below a third of the tolerance, so that the last iterate is still near the central path.
    """
    count, rows = problem.points.shape[1], problem.rows
    gradient, curvature = problem.slope(at.x)
    primal = rows @ at.x - at.slack
    dual = gradient - at.prices @ rows
    dual[:count] += at.level
    mean = float(at.slack @ at.prices) / len(rows)
    if (
        mean * len(rows) < tolerance
        and np.abs(primal).max() < FEASIBLE
        and np.abs(dual).max() < max(tolerance, RESIDUAL)
    ):
        return None
    solve = _factor(curvature + (rows.T * (at.prices / at.slack)) @ rows, count)
    excess = 1 - float(at.x[:count].sum())
    ahead = _direction(problem, at, solve, dual, primal, excess, 0.0)
    reach = [_room(at.slack, ahead.slack), _room(at.prices, ahead.prices)]
    left = float((at.slack + reach[0] * ahead.slack) @ (at.prices + reach[1] * ahead.prices)) / len(rows)
    centre = max(mean * min(left / mean, 1.0) ** 3, tolerance / (3 * len(rows)))
    move = _direction(problem, at, solve, dual, primal, excess, centre - ahead.slack * ahead.prices)
    return _advance(problem, at, move)


def _factor(block: np.ndarray, count: int):
    """A solver of the KKT system: ``block``, bordered by the simplex's row of ones."""
    size = len(block)
    system = np.zeros((size + 1, size + 1), order="F")
    system[:size, :size] = block
    system[size, :count] = system[:count, size] = 1.0
    factors, pivots, singular = _FACTOR(system)

    def solve(right: np.ndarray) -> np.ndarray:
        if singular:  # repeated points make the Hessian block so near the end
            return np.linalg.lstsq(system, right, rcond=None)[0]
        return _BACKSOLVE(factors, pivots, right)[0]

    return solve


def _direction(problem: _Problem, at: _Iterate, solve, dual, primal, excess, target) -> _Iterate:
    """The Newton direction towards ``slack * prices = target``."""
    rows, ratio = problem.rows, at.prices / at.slack
    wanted = target / at.slack - at.prices
    right = np.append((wanted - ratio * primal) @ rows - dual, excess)
    step = solve(right)
    slack = rows @ step[:-1] + primal
    return _Iterate(step[:-1], slack, wanted - ratio * slack, float(step[-1]))


def _advance(problem: _Problem, at: _Iterate, move: _Iterate) -> _Iterate:
    """As far as positivity and the domain of ``F`` allow."""
    primal, dual = (min(1.0, TO_BOUNDARY * r) for r in (_room(at.slack, move.slack), _room(at.prices, move.prices)))
    if not problem.has_level:
        primal = dual = min(primal, dual)
        while primal > 1e-12 and not problem.defined(at.x + primal * move.x):
            primal *= 0.5
    return _Iterate(
        at.x + primal * move.x,
        at.slack + primal * move.slack,
        at.prices + dual * move.prices,
        at.level + dual * move.level,
    )


def _room(at: np.ndarray, move: np.ndarray) -> float:
    """The longest step, at most one, that keeps ``at`` nonnegative."""
    steepest = float((-move / at).max())
    return 1.0 if steepest <= 1.0 else 1.0 / steepest


def _text(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:.6g}" for value in values) + ")"
