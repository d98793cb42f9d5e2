"""Solve a known model to a certified gap: find a feasible mixture or prove there is none, then close the gap."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from arnpg.errors import InfeasibleError, ObjectiveError
from arnpg.objectives import Criterion, Minimum
from arnpg.tabular.certificate import Infeasibility, criterion_bound, support, value_error
from arnpg.tabular.column_generation import Columns, Progress, Round, generate
from arnpg.tabular.kernel import DenseKernel
from arnpg.tabular.master import Mixture, best_mixture
from arnpg.tabular.oracle import Point, evaluate_point, policy_iteration
from arnpg.tabular.policy import mix

__all__ = ["Solved", "objective_error", "relative_scale", "solve_to_gap"]

INTERIOR = 1e-9  # a slack, in units of an objective's range, that counts as strictly feasible
NEGLIGIBLE = 1e-9  # a mixture weight below which a point is left out of the policy


class Solved(NamedTuple):
    """A stationary policy ``(S, A)`` with what is proved about it."""

    policy: np.ndarray
    values: np.ndarray
    multipliers: np.ndarray
    bound: float
    weights: np.ndarray
    rounds: list[Round]
    notes: list[str]


def relative_scale(criterion: Criterion, values: np.ndarray, floor: float) -> float:
    """What a relative gap is relative to: the objective's size, or its change when all values double."""
    gradient = np.asarray(criterion.objective.gradient(values))
    return max(abs(float(criterion.value(values))), float(np.abs(gradient * values).sum()), floor)


def objective_error(kernel: DenseKernel, criterion: Criterion, policy: np.ndarray) -> float:
    """How far rounding can have moved ``F`` of a policy's computed values from ``F`` of its true ones."""
    point = evaluate_point(kernel, policy)
    errors = value_error(kernel, policy, kernel.mdp.rewards, point.state_values)
    objective = criterion.objective
    if isinstance(objective, Minimum):
        return float((np.abs(objective.rows) @ errors).max())
    return 2 * float(np.abs(np.asarray(objective.gradient(point.values))) @ errors)


def solve_to_gap(
    kernel: DenseKernel,
    criterion: Criterion,
    *,
    gap: float,
    max_rounds: int,
    time_limit: float,
    progress: Progress | None = None,
) -> Solved:
    """Maximise ``F(V^pi)`` under ``C V^pi >= b`` to the relative ``gap``."""
    mdp = kernel.mdp
    deadline = time.monotonic() + time_limit
    last = evaluate_point(kernel, np.full((mdp.states, mdp.actions), 1 / mdp.actions))
    columns, rounds, notes = Columns(last), [], list[str]()

    def record(shown: Round) -> None:
        rounds.append(shown)
        if progress is not None:
            progress(shown)

    relaxed, last = _find_feasible(kernel, criterion, columns, last, max_rounds, deadline, notes)
    floor = 1e-6 * _objective_floor(kernel, criterion)

    def enough(shown: Round) -> bool:
        return shown.gap <= 0.5 * gap * relative_scale(criterion, shown.values, floor)

    shown, mixture, last = generate(
        kernel, relaxed, columns, last, enough, max_rounds=max_rounds, deadline=deadline, progress=record
    )
    policy, point = _stationary(kernel, relaxed, columns, mixture, shown.gap)
    bound = _final_bound(kernel, criterion, mixture, last)
    bound = min(bound, shown.bound) if relaxed is criterion else bound
    return Solved(policy, point.values, mixture.multipliers, bound, shown.weights, rounds, notes)


def _objective_floor(kernel: DenseKernel, criterion: Criterion) -> float:
    """The size that the objective can have: rewards' range over ``1 - gamma``, weighted as the objective weighs it."""
    sizes = np.abs(kernel.mdp.rewards).max(axis=(1, 2)) / (1 - kernel.mdp.discount)
    objective = criterion.objective
    rows = objective.rows if isinstance(objective, Minimum) else np.ones((1, len(sizes)))
    return float((np.abs(rows) @ sizes).max()) + 1e-300


def _stationary(
    kernel: DenseKernel, criterion: Criterion, columns: Columns, mixture: Mixture, gap: float
) -> tuple[np.ndarray, Point]:
    """One policy that attains the mixture, from as few points as do not cost a tenth of the gap."""
    matrix = columns.matrix[:, : len(mixture.weights)]
    chosen = np.flatnonzero(mixture.weights > NEGLIGIBLE)
    weights = mixture.weights[chosen] / mixture.weights[chosen].sum()
    kept = np.flatnonzero(weights > 1e-6)
    sparser = best_mixture(criterion, matrix[:, chosen[kept]], 1e-11, weights[kept] / weights[kept].sum())
    loss = criterion.value(mixture.values) - criterion.value(sparser.values)
    if loss <= 0.1 * max(gap, 0.0) and criterion.violation(sparser.values) <= criterion.violation(mixture.values):
        chosen, weights = chosen[kept], sparser.weights
    policy = mix(kernel, [columns.points[i].policy for i in chosen], weights)
    return policy, evaluate_point(kernel, policy)


def _final_bound(kernel: DenseKernel, criterion: Criterion, mixture: Mixture, last: Point) -> float:
    """The bound that the last prices imply for the user's own thresholds, which phase one may have relaxed."""
    gradient, _ = support(criterion, mixture.values, mixture.worst_case)
    weights = gradient + mixture.multipliers @ criterion.rows
    bound = np.inf
    for _, single in policy_iteration(kernel, weights, last):
        bound = min(bound, single)
    return criterion_bound(criterion, mixture.values, mixture.multipliers, mixture.worst_case, bound)


def _find_feasible(
    kernel: DenseKernel,
    criterion: Criterion,
    columns: Columns,
    last: Point,
    max_rounds: int,
    deadline: float,
    notes: list[str],
) -> tuple[Criterion, Point]:
    """A criterion whose constraints some mixture of ``columns`` meets strictly, or a proof that none exists.

    Phase one maximises the least slack, each in units of its objective's range; the domain of ``F`` counts as a
    constraint. Where the best slack is zero up to rounding the thresholds are relaxed by that much.
    """
    mdp = kernel.mdp
    ranges = np.maximum(np.ptp(mdp.rewards, axis=(1, 2)), 1e-12 * np.abs(mdp.rewards).max()) / (1 - mdp.discount)
    domain_rows, domain_offsets = criterion.objective.domain(mdp.objectives)
    rows = np.vstack([criterion.rows, domain_rows])
    if len(rows) == 0:
        return criterion, last
    units = np.maximum(np.abs(rows) @ ranges, 1e-300)
    offsets = np.concatenate([criterion.thresholds, -domain_offsets])
    slack = Minimum(rows / units[:, None], offsets / units)
    phase = Criterion(slack, np.zeros((0, mdp.objectives)), np.zeros(0))

    def decided(shown: Round) -> bool:
        settled = shown.gap <= 1e-6 * abs(shown.objective)
        return shown.objective > INTERIOR or (shown.bound < 0 and settled) or shown.gap <= 1e-3 * INTERIOR

    shown, mixture, last = generate(
        kernel, phase, columns, last, decided, max_rounds=max_rounds, deadline=deadline
    )
    if shown.bound < 0:
        _refuse(kernel, criterion, columns, mixture, shown, units, len(domain_rows))
    if shown.objective > INTERIOR:
        return criterion, last
    parts = slack.parts(shown.values)[: len(criterion.thresholds)]
    relief = np.maximum(INTERIOR - parts, 0.0) * units[: len(parts)]
    notes.append(f"the constraints are only just feasible: thresholds were relaxed by up to {relief.max(initial=0):.1e}")
    return Criterion(criterion.objective, criterion.rows, criterion.thresholds - relief), last


def _refuse(
    kernel: DenseKernel,
    criterion: Criterion,
    columns: Columns,
    mixture: Mixture,
    shown: Round,
    units: np.ndarray,
    domain: int,
) -> None:
    """Raise the error that carries the proof."""
    policy = mix(kernel, [columns.points[i].policy for i in range(len(mixture.weights))], mixture.weights)
    point = evaluate_point(kernel, policy)
    constraints = len(criterion.thresholds)
    weights = mixture.worst_case / units
    violations = np.maximum(-criterion.slack(point.values), 0.0)
    proof = Infeasibility(weights[:constraints], -shown.bound, violations, point.values, policy)
    if domain and mixture.worst_case[constraints:].sum() > 1e-6:
        blamed = np.flatnonzero(criterion.objective.domain(kernel.mdp.objectives)[0][mixture.worst_case[constraints:].argmax()])
        name = kernel.mdp.names[int(blamed[0])]
        raise ObjectiveError(
            f"the objective's logarithm needs a positive value of {name!r}, and no policy reaches one; "
            "set ProportionalFair(offset=...) above zero or leave it out."
        )
    worst = float(violations.max())
    raise InfeasibleError(
        f"no policy meets the constraints: the least violation reachable is {worst:.6g}, proved by weights on them.",
        proof,
    )
