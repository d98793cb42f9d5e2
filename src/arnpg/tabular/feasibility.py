"""Phase one: a mixture that meets the constraints strictly, or a proof that no policy meets them.

It maximises the least slack ``min_i (C V - b)_i / u_i`` by the same column generation, each constraint in units ``u_i``
of its objective's range. A bound below zero is the proof: for its weights ``w >= 0``, every policy has
``sum_i w_i (b - C V)_i >= shortfall > 0``. Where ``F`` has a domain, such as a logarithm's, that must be met as well.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from arnpg.errors import InfeasibleError, ObjectiveError
from arnpg.tabular.certificate import Infeasibility
from arnpg.tabular.column_generation import Budget, Columns, Round, generate
from arnpg.tabular.host import HostCriterion, least_of
from arnpg.tabular.kernel import AbstractKernel
from arnpg.tabular.master import Mixture
from arnpg.tabular.policy import mix

__all__ = ["find_feasible", "value_units"]

INTERIOR = 1e-9  # a slack, in units of an objective's range, that counts as strictly feasible
AMPLE = 1e-2  # a slack that needs no improvement
FLATTEST = 1e-3  # an objective's range counts as at least this share of its size: rounding is relative to size


def value_units(kernel: AbstractKernel) -> np.ndarray:
    """The range of each objective's values, as the rewards allow it; ``(m,)``."""
    ranges = np.maximum(kernel.mdp.reward_ranges, FLATTEST * kernel.mdp.reward_sizes)
    return np.where(ranges > 0, ranges, 1.0) / (1 - kernel.mdp.discount)


def find_feasible(
    kernel: AbstractKernel, criterion: HostCriterion, columns: Columns, budget: Budget, notes: list[str]
) -> HostCriterion:
    """A criterion whose constraints some mixture of ``columns`` meets strictly.

    Where the best slack is zero up to rounding the thresholds are relaxed by that much, and ``notes`` says so.

    Raises:
        InfeasibleError: with a proof, where no policy meets the constraints.
        ObjectiveError: where no policy that meets them has a value at which ``F`` is defined.
    """
    ranges = value_units(kernel)
    units = np.abs(criterion.rows) @ ranges
    relief = np.zeros(len(units))
    if len(units):
        shown, mixture = _most_slack(
            kernel, criterion.rows / units[:, None], criterion.thresholds / units, columns, budget
        )
        if shown.bound < 0:
            _refuse_constraints(kernel, criterion, columns, mixture, shown, units)
        if shown.objective <= INTERIOR:
            parts = criterion.slack(shown.values) / units
            relief = np.maximum(2 * INTERIOR - parts, 0.0) * units
            notes.append(f"the constraints are only just feasible: limits were relaxed by up to {relief.max():.1e}")
    relaxed = criterion._replace(thresholds=criterion.thresholds - relief)
    if len(criterion.domain_rows):
        _require_domain(kernel, relaxed, columns, budget, ranges)
    return relaxed


def _most_slack(
    kernel: AbstractKernel, rows: np.ndarray, offsets: np.ndarray, columns: Columns, budget: Budget
) -> tuple[Round, Mixture]:
    """Rounds until the least slack is within a factor of ten of the best, or the sign of the best is settled."""

    def decided(shown: Round) -> bool:
        settled = shown.gap <= 1e-6 * abs(shown.objective)
        ample = shown.objective > AMPLE or shown.objective > max(INTERIOR, 0.1 * shown.bound)
        return ample or (shown.bound < 0 and settled) or shown.gap <= 0.1 * INTERIOR

    return generate(kernel, least_of(rows, offsets), columns, decided, budget)


def _require_domain(
    kernel: AbstractKernel, criterion: HostCriterion, columns: Columns, budget: Budget, ranges: np.ndarray
) -> None:
    """Find a mixture inside the constraints and the domain of ``F``, or name the objective that forbids it."""
    rows = np.vstack([criterion.rows, criterion.domain_rows])
    offsets = np.concatenate([criterion.thresholds, -criterion.domain_offsets])
    units = np.abs(rows) @ ranges
    shown, mixture = _most_slack(kernel, rows / units[:, None], offsets / units, columns, budget)
    parts = (criterion.domain_rows @ shown.values + criterion.domain_offsets) / units[len(criterion.rows) :]
    if parts.min() > 1e-3 * INTERIOR and shown.bound > 0:
        return
    worst = criterion.domain_rows[int(np.argmax(mixture.worst_case[len(criterion.rows) :]))]
    name = kernel.mdp.names[int(np.flatnonzero(worst)[0])]
    who = "no policy that meets the constraints" if len(criterion.rows) else "no policy"
    raise ObjectiveError(
        f"the objective's logarithm needs a positive value of {name!r}, and {who} reaches one with the others; "
        "set ProportionalFair(offset=...) above zero, or leave it out of the weights."
    )


def _refuse_constraints(
    kernel: AbstractKernel,
    criterion: HostCriterion,
    columns: Columns,
    mixture: Mixture,
    shown: Round,
    units: np.ndarray,
) -> NoReturn:
    """Raise the error that carries the proof."""
    used = np.flatnonzero(mixture.weights > 0)
    policy, values, _ = mix(kernel, [columns.points[i] for i in used], mixture.weights[used])
    violations = np.maximum(-criterion.slack(values), 0.0)
    proof = Infeasibility(shown.worst_case / units, -shown.bound, violations, values, policy)
    raise InfeasibleError(
        f"no policy meets the constraints: the least violation reachable is {violations.max():.6g}, "
        "proved by weights on them; relax the limits by that much or more.",
        proof,
    )
