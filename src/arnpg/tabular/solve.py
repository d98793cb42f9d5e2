"""Solve a known model to a certified gap: find a feasible mixture or prove there is none, then close the gap."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from arnpg.objectives import Criterion
from arnpg.tabular.column_generation import Budget, Columns, Round, generate
from arnpg.tabular.feasibility import find_feasible
from arnpg.tabular.host import HostCriterion, on_host
from arnpg.tabular.kernel import AbstractKernel, Point, Policy
from arnpg.tabular.master import Mixture, best_mixture
from arnpg.tabular.policy import mix

__all__ = ["Solved", "objective_error", "relative_scale", "solve_to_gap"]

NEGLIGIBLE = 1e-13  # a mixture weight below which a point is left out of the policy
SMALLEST = (
    1e-5  # an objective smaller than this share of what rewards allow is zero by cancellation: see ``Solved.floor``
)


class Solved(NamedTuple):
    """A stationary policy ``(S, A)`` with what is proved about it.

    ``bound`` is above every feasible policy's ``F``; ``error`` is how far rounding can have moved ``F`` of ``values``;
    ``floor`` is the size below which a relative gap is relative to it instead of to ``F``.
    """

    policy: np.ndarray
    values: np.ndarray
    multipliers: np.ndarray
    bound: float
    error: float
    floor: float
    weights: np.ndarray
    rounds: list[Round]
    notes: list[str]


def relative_scale(criterion: Criterion | HostCriterion, values: np.ndarray, floor: float) -> float:
    """A relative gap's unit: the objective's size, or its change to second order when all values double."""
    host = on_host(criterion, len(values))
    first, second = host.gradient(values), host.hessian(values)
    change = np.abs(first * values).sum() + 0.5 * np.abs(values) @ np.abs(second) @ np.abs(values)
    return max(abs(host.value(values)), float(change), floor)


def objective_error(kernel: AbstractKernel, criterion: Criterion | HostCriterion, policy: Policy) -> float:
    """How far rounding can have moved ``F`` of a policy's computed values from ``F`` of its true ones."""
    return _point_error(kernel, on_host(criterion, kernel.mdp.objectives), kernel.evaluate(policy))


def _point_error(kernel: AbstractKernel, criterion: HostCriterion, point: Point) -> float:
    errors = kernel.error(point)
    if criterion.parts_rows is not None:
        parts = criterion.parts_rows @ point.values - criterion.parts_offsets
        return float(parts.min() - (parts - np.abs(criterion.parts_rows) @ errors).min())
    return 2 * float(np.abs(criterion.gradient(point.values)) @ errors)


def solve_to_gap(
    kernel: AbstractKernel,
    criterion: Criterion | HostCriterion,
    *,
    gap: float,
    max_rounds: int,
    time_limit: float,
    progress: Callable[[Round], None] | None = None,
    columns: Columns | None = None,
) -> Solved:
    """Maximise ``F(V^pi)`` under ``C V^pi >= b`` to the relative ``gap``; ``columns`` may hold points known before."""
    mdp = kernel.mdp
    host, budget = on_host(criterion, mdp.objectives), Budget(max_rounds, time.monotonic() + time_limit)
    columns = Columns(kernel.uniform(), kernel.noise) if columns is None else columns
    rounds, notes = list[Round](), list[str]()
    relaxed = find_feasible(kernel, host, columns, budget, notes)
    floor = SMALLEST * _objective_floor(kernel, host)

    latest = _Latest(columns, rounds, progress)

    def enough(shown: Round) -> bool:
        return shown.gap <= 0.5 * gap * relative_scale(host, shown.values, floor)

    try:
        generate(kernel, relaxed, columns, enough, budget, latest)
    except KeyboardInterrupt:
        if not rounds:
            raise
        notes.append(f"interrupted: the best after {len(rounds)} rounds")
    shown, mixture = rounds[-1], latest.mixture
    point = _stationary(kernel, relaxed, latest.points, mixture, shown.gap)
    bound = _concave_bound(host, columns, point, shown.bound, floor, notes)
    error = _point_error(kernel, host, point)
    return Solved(point.policy, point.values, mixture.multipliers, bound, error, floor, shown.weights, rounds, notes)


class _Latest:
    """The last mixture with its points, since rounds that follow drop some."""

    mixture: Mixture
    points: list[Point]

    def __init__(self, columns: Columns, rounds: list[Round], progress: Callable[[Round], None] | None) -> None:
        self._columns, self._rounds, self._progress = columns, rounds, progress

    def __call__(self, shown: Round, mixture: Mixture) -> None:
        """Keep a round, then show it."""
        self._rounds.append(shown)
        self.mixture, self.points = mixture, self._columns.points[: len(mixture.weights)]
        if self._progress is not None:
            self._progress(shown)


def _objective_floor(kernel: AbstractKernel, criterion: HostCriterion) -> float:
    """The size that the objective can have: rewards' size over ``1 - gamma``, weighted as the objective weighs it."""
    sizes = kernel.mdp.reward_sizes / (1 - kernel.mdp.discount)
    rows = criterion.parts_rows if criterion.parts_rows is not None else np.ones((1, len(sizes)))
    return float((np.abs(rows) @ sizes).max()) + 1e-300


def _stationary(
    kernel: AbstractKernel, criterion: HostCriterion, points: Sequence[Point], mixture: Mixture, gap: float
) -> Point:
    """One policy that attains the mixture, from as few points as do not cost a tenth of the gap."""
    matrix = np.stack([point.values for point in points], axis=1)
    chosen = np.flatnonzero(mixture.weights > NEGLIGIBLE)
    weights = mixture.weights[chosen] / mixture.weights[chosen].sum()
    kept = np.flatnonzero(weights > 1e-6)
    if len(kept) < len(chosen):
        sparser = best_mixture(criterion, matrix[:, chosen[kept]], 1e-11, weights[kept] / weights[kept].sum())
        loss = criterion.value(mixture.values) - criterion.value(sparser.values)
        if loss <= 0.1 * max(gap, 0.0) and criterion.violation(sparser.values) <= criterion.violation(mixture.values):
            chosen, weights = chosen[kept], sparser.weights
    return mix(kernel, [points[int(i)] for i in chosen], weights)


def _concave_bound(
    criterion: HostCriterion, columns: Columns, point: Point, bound: float, floor: float, notes: list[str]
) -> float:
    """The bound, or none where a value seen lies above it: then the user's function is not concave."""
    if criterion.trusted:
        return bound
    for values in [*columns.matrix.T, point.values]:
        value = criterion.value(values)
        if value > bound + 1e-9 * max(abs(bound), floor) and criterion.violation(values) == 0:
            notes.append(
                f"the function is not concave: it is {value:.9g} at a policy seen, above the bound {bound:.9g}"
            )
            return float("inf")
    return bound
