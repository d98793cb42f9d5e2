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
from arnpg.tabular.kernel import AbstractKernel, Point
from arnpg.tabular.master import Mixture, best_mixture

__all__ = ["Budget", "Columns", "Progress", "Round", "generate"]

MAX_COLUMNS = 120
LOOSEST, TIGHTEST = 1e-3, 1e-12
RESOLVED = 0.3  # an ascent may end when its own bounds are this near, relative to what it promises


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


Progress = Callable[[Round, Mixture], None]


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

    def prune(self) -> None:
        """Drop the idlest points of the last mixture where there are too many."""
        if len(self.points) > MAX_COLUMNS:
            kept = np.sort(np.argsort(-self._weights)[: MAX_COLUMNS // 2])
            self.points, self.matrix = [self.points[i] for i in kept], self.matrix[:, kept]
            self._weights = self._weights[kept]

    def weigh(self, weights: np.ndarray) -> None:
        """Note the last mixture."""
        self._weights = weights

    @property
    def start(self) -> np.ndarray:
        """Weights to start the next master from: the last ones, nothing for the new points."""
        return self._weights / self._weights.sum()


def generate(
    kernel: AbstractKernel,
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
        round_of = _RoundOf(criterion, mixture, objective, proof, number, evaluations, began)
        priced = _price(kernel, round_of, columns, enough, budget)
        shown = round_of(priced.single, priced.used)
        proof, evaluations = _Proof(shown.bound, shown.worst_case), shown.evaluations
        if progress is not None:
            progress(shown, mixture)
        if enough(shown) or time.monotonic() > budget.deadline or (not priced.new and tolerance <= TIGHTEST):
            break
        tolerance = _next_tolerance(tolerance, shown, priced.new)
    return shown, mixture


class _Proof(NamedTuple):
    bound: float
    worst_case: np.ndarray


class _RoundOf(NamedTuple):
    """What a round would show if an ascent ended with a given bound."""

    criterion: HostCriterion
    mixture: Mixture
    objective: float
    proof: _Proof
    number: int
    evaluations: int
    began: float

    @property
    def weights(self) -> np.ndarray:
        """The ascent weights ``G`` of the mixture."""
        gradient, _ = self.criterion.support(self.mixture.values, self.mixture.worst_case)
        return gradient + self.mixture.multipliers @ self.criterion.rows

    def __call__(self, single: float, used: int) -> Round:
        """With ``single`` a bound of ``max_pi <G, V^pi>``, reached by ``used`` evaluations."""
        mixture = self.mixture
        bound = criterion_bound(self.criterion, mixture.values, mixture.multipliers, mixture.worst_case, single)
        proof = min(self.proof, _Proof(bound, mixture.worst_case), key=lambda p: p.bound)
        return Round(
            self.number,
            mixture.values,
            self.objective,
            proof.bound,
            self.weights,
            mixture.multipliers,
            proof.worst_case,
            self.evaluations + used,
            time.monotonic() - self.began,
        )


class _Priced(NamedTuple):
    """A bound of ``max_pi <G, V^pi>``, how many points were new, evaluations used."""

    single: float
    new: int
    used: int


def _mixture(criterion: HostCriterion, columns: Columns, tolerance: float, number: int) -> tuple[Mixture, float]:
    """The master's answer over the points so far, and ``F`` of it; says the round where ``F`` misbehaves."""
    columns.prune()
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
    kernel: AbstractKernel, round_of: _RoundOf, columns: Columns, enough: Callable[[Round], bool], budget: Budget
) -> _Priced:
    """Ascend along the mixture's weights until the round is decided, or the ascent says enough of where it leads."""
    weights, single, new, used = round_of.weights, np.inf, 0, 0
    level = float(weights @ round_of.mixture.values)
    start = columns.best(weights)

    def decided(lower: float, upper: float) -> bool:
        resolved = upper - lower <= RESOLVED * (upper - level)
        return resolved or enough(round_of(upper, used)) or time.monotonic() > budget.deadline

    for step in kernel.ascend(weights, start, decided):
        single = min(single, step.upper)
        if step.point is not start:
            used += 1
            new += step.point is not None and columns.add(step.point)
    return _Priced(single, new, used)


def _next_tolerance(tolerance: float, shown: Round, new: int) -> float:
    """Follow the gap down; tighten at once where the oracle had nothing new to say."""
    scale = max(abs(shown.objective), abs(shown.bound), 1e-300)
    follow = 0.1 * shown.gap / scale
    return float(np.clip(min(follow, tolerance * (1.0 if new else 1e-2)), TIGHTEST, LOOSEST))
