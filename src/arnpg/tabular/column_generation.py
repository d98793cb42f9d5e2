"""ARNPG with a corrective master: from the points seen, the best mixture and its prices; from the prices, a better point.

One round is one macro step of the paper's framework with the step size at its limit: the ascent weights are those of
the best mixture so far instead of those of the last iterate, the inner loop is run to its end with ``alpha -> 0``
(policy iteration), and the mixture replaces the average of the iterates. Every round ends with a rigorous bound of the
optimum, so the loop stops when the requested gap is proved.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from arnpg.objectives import Criterion
from arnpg.tabular.certificate import criterion_bound, support
from arnpg.tabular.kernel import DenseKernel
from arnpg.tabular.master import Mixture, best_mixture
from arnpg.tabular.oracle import Point, policy_iteration

__all__ = ["Columns", "Progress", "Round", "generate"]

MAX_COLUMNS = 120
LOOSEST, TIGHTEST = 1e-3, 1e-12


class Round(NamedTuple):
    """What one round shows."""

    number: int
    values: np.ndarray
    objective: float
    bound: float
    weights: np.ndarray
    multipliers: np.ndarray
    evaluations: int
    seconds: float

    @property
    def gap(self) -> float:
        """``bound - objective``: the optimum is at most this far away."""
        return self.bound - self.objective


Progress = Callable[[Round], None]


class Columns:
    """The points seen, without repetition; the idlest go when there are too many."""

    def __init__(self, first: Point) -> None:
        """Start from one point."""
        self.points = [first]
        self._weights = np.ones(1)

    @property
    def matrix(self) -> np.ndarray:
        """The value vectors as columns ``(m, n)``."""
        return np.stack([point.values for point in self.points], axis=1)

    def add(self, point: Point) -> bool:
        """Keep a point unless its values are there already; says whether it was new."""
        matrix = self.matrix
        size = np.abs(matrix).max(axis=1) + 1e-300
        if (np.abs(matrix - point.values[:, None]).max(axis=1) == 0).all():
            return False
        distance = (np.abs(matrix - point.values[:, None]) / size[:, None]).max(axis=0)
        if distance.min() < 1e-14:
            return False
        self.points.append(point._replace(state_values=point.state_values[:0]))
        self._weights = np.append(self._weights, np.inf)
        return True

    def weigh(self, weights: np.ndarray) -> None:
        """Remember the last weights, and drop the points of least weight beyond ``MAX_COLUMNS``."""
        self._weights = weights.copy()
        if len(self.points) > MAX_COLUMNS:
            kept = np.sort(np.argsort(-weights)[: MAX_COLUMNS // 2])
            self.points = [self.points[i] for i in kept]
            self._weights = weights[kept]

    @property
    def start(self) -> np.ndarray:
        """Weights to start the next master from: the last ones, with a little for the new points."""
        weights = np.where(np.isinf(self._weights), 0.0, self._weights)
        weights = 0.9 * weights / max(weights.sum(), 1e-300) + 0.1 / len(weights)
        return weights / weights.sum()


def generate(
    kernel: DenseKernel,
    criterion: Criterion,
    columns: Columns,
    last: Point,
    enough: Callable[[Round], bool],
    *,
    max_rounds: int,
    deadline: float,
    progress: Progress | None = None,
) -> tuple[Round, Mixture, Point]:
    """Run rounds until one is ``enough``, progress ends, ``max_rounds``, or the ``deadline`` of the monotonic clock.

    ``last`` is the policy that the first oracle call starts from; ``columns`` grows in place.
    """
    began, best_bound, evaluations, tolerance = time.monotonic(), np.inf, 0, LOOSEST
    for number in range(max_rounds):
        mixture = best_mixture(criterion, columns.matrix, tolerance, columns.start)
        columns.weigh(mixture.weights)
        gradient, _ = support(criterion, mixture.values, mixture.worst_case)
        weights = gradient + mixture.multipliers @ criterion.rows
        new = 0
        for point, single in policy_iteration(kernel, weights, last):
            new += columns.add(point) if point is not last else 0
            evaluations += point is not last
            bound = criterion_bound(criterion, mixture.values, mixture.multipliers, mixture.worst_case, single)
            best_bound = min(best_bound, bound)
            last = point
        objective = float(criterion.value(mixture.values))
        elapsed = time.monotonic() - began
        shown = Round(number, mixture.values, objective, best_bound, weights, mixture.multipliers, evaluations, elapsed)
        if progress is not None:
            progress(shown)
        if enough(shown) or time.monotonic() > deadline:
            break
        if not new and tolerance <= TIGHTEST:
            break
        tolerance = _next_tolerance(tolerance, shown, new)
    return shown, mixture, last


def _next_tolerance(tolerance: float, shown: Round, new: int) -> float:
    """Follow the gap down; tighten at once where the oracle had nothing new to say."""
    scale = max(abs(shown.objective), abs(shown.bound), 1e-300)
    follow = 0.1 * shown.gap / scale
    return float(np.clip(min(follow, tolerance * (1.0 if new else 1e-2)), TIGHTEST, LOOSEST))
