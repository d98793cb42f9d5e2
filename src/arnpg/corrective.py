"""The default solver behind ``arnpg.solve``: column generation, and what every answer is checked and told with."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from arnpg.criteria import AbstractCriterion
from arnpg.objectives import Criterion
from arnpg.solution import Candidate, Solution, Trace
from arnpg.tabular.choice import kernel_of
from arnpg.tabular.column_generation import Columns, Round
from arnpg.tabular.kernel import AbstractKernel
from arnpg.tabular.mdp import MDP
from arnpg.tabular.policy import TabularPolicy
from arnpg.tabular.solve import Solved, objective_error, relative_scale, solve_to_gap

__all__ = ["DEFAULT_METHOD", "MAX_ROUNDS", "ROUNDING", "Progress", "answer", "named", "solve_corrective"]

DEFAULT_METHOD = "arnpg"
MAX_ROUNDS = 1000
ROUNDING = 1e-8  # a violation below this, relative to the range of values, is rounding


class Progress(NamedTuple):
    """What a progress callback is shown."""

    step: int
    steps: int | None
    values: np.ndarray
    objective: float
    violation: float
    gap: float
    seconds: float
    left: float | None = None  # seconds, estimated


def solve_corrective(
    kernel: AbstractKernel,
    words: AbstractCriterion,
    *,
    gap: float,
    rounds: int = MAX_ROUNDS,
    limit: float = math.inf,
    progress: Callable[[Progress], None] | None = None,
    columns: Columns | None = None,
) -> Solution:
    """``solve`` by column generation; ``columns`` are points known from other criteria, and grow in place."""
    began, mdp = time.monotonic(), kernel.mdp
    criterion = words.bind(mdp.names)
    pace = _Pace(0.5 * gap)

    def show(shown: Round) -> None:
        if progress is not None:
            violation = float(criterion.violation(shown.values))
            left = pace(shown.gap / relative_scale(criterion, shown.values, 0.0), shown.seconds)
            progress(
                Progress(
                    shown.number + 1, None, shown.values, shown.objective, violation, shown.gap, shown.seconds, left
                )
            )

    solved = solve_to_gap(
        kernel, criterion, gap=gap, max_rounds=rounds, time_limit=limit, progress=show, columns=columns
    )
    policy = TabularPolicy(solved.policy)
    found = Candidate(
        policy, solved.values, float(criterion.value(solved.values)), float(criterion.violation(solved.values))
    )
    trace = _rounds_trace(criterion, solved.rounds)
    how = f"column generation, {len(solved.rounds)} rounds, last bound from policy iteration's Bellman residual"
    seconds = time.monotonic() - began
    return answer(mdp, words, criterion, "arnpg", found, solved, gap, {}, trace, how, list(solved.notes), seconds)


class _Pace:
    """Seconds left, if the gap goes on falling by the same factor a second as it has so far."""

    def __init__(self, target: float) -> None:
        self._target, self._first = target, (math.inf, 0.0)

    def __call__(self, gap: float, seconds: float) -> float | None:
        """From the relative gap reached after ``seconds``; none while it cannot be told."""
        if not math.isfinite(self._first[0]):
            self._first = (gap, seconds)
        first, began = self._first
        if not 0 < gap < first or not math.isfinite(first):
            return None
        rate = math.log(first / gap) / max(seconds - began, 1e-9)
        return max(math.log(gap / self._target), 0.0) / rate


def answer(
    mdp: MDP,
    words: AbstractCriterion,
    criterion: Criterion,
    method: str,
    found: Candidate,
    reference: Solved,
    gap: float,
    candidates: dict[str, Candidate],
    trace: Trace,
    how: str,
    notes: list[str],
    seconds: float,
) -> Solution:
    """The ``Solution`` of what was ``found``, judged by the bound of the ``reference``."""
    if method == DEFAULT_METHOD:
        error = reference.error
    else:
        error = objective_error(kernel_of(mdp), criterion, found.policy.probabilities)
    distance = max(reference.bound - found.objective, 0.0) + error
    relative = distance / relative_scale(criterion, found.values, reference.floor)
    ranges = float(mdp.reward_ranges.max()) / (1 - mdp.discount)
    feasible = found.violation <= ROUNDING * max(ranges, 1e-300)
    prices = dict(zip(words.constraint_labels(), map(float, reference.multipliers), strict=True))
    return Solution(
        method=method,
        criterion=words.describe(mdp.names),
        values=named(mdp, found.values),
        objective=found.objective,
        violation=found.violation,
        multipliers=prices,
        gap=distance,
        relative_gap=relative,
        certified=bool(relative <= gap and feasible),
        how=how,
        policy=found.policy,
        candidates=candidates,
        trace=trace,
        notes=tuple([*mdp.notes, *notes]),
        seconds=seconds,
    )


def _rounds_trace(criterion: Criterion, rounds: list[Round]) -> Trace:
    column = lambda name: np.array([getattr(shown, name) for shown in rounds])  # noqa: E731
    return Trace(
        values=column("values"),
        objective=column("objective"),
        violation=np.array([float(criterion.violation(shown.values)) for shown in rounds]),
        weights=column("weights"),
        dual=column("multipliers"),
        micro_steps=np.diff(column("evaluations"), prepend=0),
        kl=np.zeros(0),
        entropy=np.zeros(0),
        bound=column("bound"),
        seconds=column("seconds"),
    )


def named(mdp: MDP, values: np.ndarray) -> dict[str, float]:
    """Values by name."""
    return dict(zip(mdp.names, map(float, values), strict=True))
