"""ARNPG with a corrective master: from the points seen the best mixture and its prices, from the prices a better point.

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

from arnpg.errors import NumericalError, ObjectiveError
from arnpg.tabular.certificate import criterion_bound
from arnpg.tabular.host import HostCriterion
from arnpg.tabular.kernel import DenseKernel
from arnpg.tabular.master import Mixture, best_mixture
from arnpg.tabular.oracle import Point, policy_iteration

__all__ = ["Budget", "Columns", "Progress", "Round", "generate"]

MAX_COLUMNS = 120
LOOSEST, TIGHTEST = 1e-3, 1e-12


class Round(NamedTuple):
    """What one round shows; ``worst_case`` are the weights of a minimum that imply ``bound``, the best so far."""

    number: int
    values: np.ndarray
    objective: float
    bound: float
    weights: np.ndarray
    multipliers: np.ndarray
    worst_case: np.ndarray
    evaluations: int
    seconds: float

    @property
    def gap(self) -> float:
        """``bound - objective``: the optimum is at most this far away."""
        return self.bound - self.objective


class Budget(NamedTuple):
    """When to stop whatever was reached: rounds, and a time of the monotonic clock."""

    max_rounds: int
    deadline: float


Progress = Callable[[Round], None]


class Columns:
    """The points seen, without repetition; the idlest go when there are too many."""

    def __init__(self, first: Point, noise: float) -> None:
        """Start from one point; values that differ by less than ``noise``, relatively, are the same."""
        self.points = [first]
        self.matrix = first.values[:, None]  # value vectors as columns (m, n)
        self._weights = np.ones(1)
        self._noise = noise

    def add(self, point: Point) -> bool:
        """Keep a point unless its values are there already; says whether it was new."""
        size = np.abs(self.matrix).max(axis=1) + 1e-300
        distance = (np.abs(self.matrix - point.values[:, None]) / size[:, None]).max(axis=0)
        if distance.min() <= self._noise:
            return False
        self.points.append(point)
        self.matrix = np.column_stack([self.matrix, point.values])
        self._weights = np.append(self._weights, 0.0)
        return True

    def best(self, weights: np.ndarray) -> Point:
        """The point with the largest ``<G, V>``: the farthest start for the oracle."""
        return self.points[int((weights @ self.matrix).argmax())]

    def weigh(self, weights: np.ndarray) -> None:
        """Note the last mixture; drop the idlest points where there are too many."""
        self._weights = weights
        if len(weights) > MAX_COLUMNS:
            kept = np.sort(np.argsort(-weights)[: MAX_COLUMNS // 2])
            self.points, self.matrix = [self.points[i] for i in kept], self.matrix[:, kept]
            self._weights = weights[kept]

    @property
    def start(self) -> np.ndarray:
        """Weights to start the next master from: the last ones, nothing for the new points."""
        return self._weights / self._weights.sum()


def generate(
    kernel: DenseKernel,
    criterion: HostCriterion,
    columns: Columns,
    enough: Callable[[Round], bool],
    budget: Budget,
    progress: Progress | None = None,
) -> tuple[Round, Mixture]:
    """Run rounds until one is ``enough``, progress ends, or the ``budget`` is used; ``columns`` grows in place."""
    began, tolerance = time.monotonic(), LOOSEST
    proof = _Proof(np.inf, np.zeros(0))
    evaluations = 0
    for number in range(budget.max_rounds):
        mixture, objective = _mixture(criterion, columns, tolerance, number)
        weights, single, new, used = _price(kernel, criterion, columns, mixture)
        bound = criterion_bound(criterion, mixture.values, mixture.multipliers, mixture.worst_case, single)
        proof = min(proof, _Proof(bound, mixture.worst_case), key=lambda p: p.bound)
        evaluations += used
        elapsed = time.monotonic() - began
        shown = Round(
            number,
            mixture.values,
            objective,
            proof.bound,
            weights,
            mixture.multipliers,
            proof.worst_case,
            evaluations,
            elapsed,
        )
        if progress is not None:
            progress(shown)
        if enough(shown) or time.monotonic() > budget.deadline or (not new and tolerance <= TIGHTEST):
            break
        tolerance = _next_tolerance(tolerance, shown, new)
    return shown, mixture


class _Proof(NamedTuple):
    bound: float
    worst_case: np.ndarray


def _mixture(criterion: HostCriterion, columns: Columns, tolerance: float, number: int) -> tuple[Mixture, float]:
    """The master's answer over the points so far, and ``F`` of it; says the round where ``F`` misbehaves."""
    try:
        mixture = best_mixture(criterion, columns.matrix, tolerance, columns.start)
        objective = criterion.value(mixture.values)
    except ArithmeticError as error:
        raise NumericalError(f"round {number}: {error}.") from error
    except ObjectiveError as error:
        raise ObjectiveError(f"round {number}: {error}") from error
    columns.weigh(mixture.weights)
    if not np.isfinite(objective):
        raise ObjectiveError(f"round {number}: the objective is {objective} at values {mixture.values.tolist()}.")
    return mixture, objective


def _price(
    kernel: DenseKernel, criterion: HostCriterion, columns: Columns, mixture: Mixture
) -> tuple[np.ndarray, float, int, int]:
    """Ascent weights ``G``, a bound of ``max_pi <G, V^pi>``, new points, and evaluations used."""
    gradient, _ = criterion.support(mixture.values, mixture.worst_case)
    weights = gradient + mixture.multipliers @ criterion.rows
    single, new, used = np.inf, 0, -1
    for point, bound in policy_iteration(kernel, weights, columns.best(weights)):
        new += columns.add(point) if used >= 0 else 0
        used += 1
        single = min(single, bound)
    return weights, single, new, used


def _next_tolerance(tolerance: float, shown: Round, new: int) -> float:
    """Follow the gap down; tighten at once where the oracle had nothing new to say."""
    scale = max(abs(shown.objective), abs(shown.bound), 1e-300)
    follow = 0.1 * shown.gap / scale
    return float(np.clip(min(follow, tolerance * (1.0 if new else 1e-2)), TIGHTEST, LOOSEST))
