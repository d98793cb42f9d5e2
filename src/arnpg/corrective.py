"""The default solver behind ``arnpg.solve``: column generation, and what every answer is checked and told with."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from arnpg.criteria import AbstractCriterion
from arnpg.objectives import Criterion
from arnpg.solution import Candidate, Solution, Trace
from arnpg.tabular.column_generation import Columns, Round
from arnpg.tabular.kernel import AbstractKernel
from arnpg.tabular.mdp import MDP
from arnpg.tabular.points_file import PointsFile
from arnpg.tabular.policy import TabularPolicy
from arnpg.tabular.solve import Solved, relative_scale, solve_to_gap

__all__ = [
    "DEFAULT_METHOD",
    "MAX_ROUNDS",
    "ROUNDING",
    "Progress",
    "Told",
    "answer",
    "candidate",
    "named",
    "solve_corrective",
]

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
    checkpoint: str | os.PathLike | None = None,
) -> Solution:
    """``solve`` by column generation; ``columns`` are points known from other criteria, and grow in place."""
    began, mdp = time.monotonic(), kernel.mdp
    criterion = words.bind(mdp.names)
    columns = Columns(kernel.uniform(), kernel.noise) if columns is None else columns
    file = PointsFile(checkpoint, kernel)
    known = file.restore(columns)
    report = _Reporter(criterion, gap, progress)

    def show(shown: Round) -> None:
        file.note(columns)
        report(shown)

    ends: dict[str, Any] = {"gap": gap, "max_rounds": rounds, "time_limit": limit}
    try:
        solved = solve_to_gap(kernel, criterion, **ends, progress=show, columns=columns)
    finally:
        file.write(columns)
    notes = [*([f"went on from {known} points of {checkpoint}"] if known else []), *solved.notes]
    found = candidate(criterion, TabularPolicy(solved.policy), solved.values)
    how = f"column generation, {len(solved.rounds)} rounds, last bound from policy iteration's Bellman residual"
    told = Told(DEFAULT_METHOD, how, {}, _rounds_trace(criterion, solved.rounds), notes, time.monotonic() - began)
    return answer(mdp, words, found, solved, solved.error, gap, told)


class _Reporter:
    """Rounds as ``Progress``, with the seconds left."""

    def __init__(self, criterion: Criterion, gap: float, progress: Callable[[Progress], None] | None) -> None:
        self._criterion, self._progress, self._pace = criterion, progress, _Pace(0.5 * gap)

    def __call__(self, shown: Round) -> None:
        """Show a round to whoever wants to know."""
        if self._progress is None:
            return
        violation = float(self._criterion.violation(shown.values))
        left = self._pace(shown.gap / relative_scale(self._criterion, shown.values, 0.0), shown.seconds)
        self._progress(
            Progress(shown.number + 1, None, shown.values, shown.objective, violation, shown.gap, shown.seconds, left)
        )


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


class Told(NamedTuple):
    """What a solution says beside its numbers."""

    method: str
    how: str
    candidates: dict[str, Candidate]
    trace: Trace
    notes: list[str]
    seconds: float


def answer(
    mdp: MDP, words: AbstractCriterion, found: Candidate, reference: Solved, error: float, gap: float, told: Told
) -> Solution:
    """The ``Solution`` of what was ``found``, judged by the bound of the ``reference``.

    ``error`` is how far rounding can have moved its objective.
    """
    criterion = words.bind(mdp.names)
    distance = max(reference.bound - found.objective, 0.0) + error
    relative = distance / relative_scale(criterion, found.values, reference.floor)
    ranges = float(mdp.reward_ranges.max()) / (1 - mdp.discount)
    feasible = found.violation <= ROUNDING * max(ranges, 1e-300)
    return Solution(
        method=told.method,
        criterion=words.describe(mdp.names),
        values=named(mdp, found.values),
        objective=found.objective,
        violation=found.violation,
        multipliers=dict(zip(words.constraint_labels(), map(float, reference.multipliers), strict=True)),
        gap=distance,
        relative_gap=relative,
        certified=bool(relative <= gap and feasible),
        how=told.how,
        policy=found.policy,
        candidates=told.candidates,
        trace=told.trace,
        notes=tuple([*mdp.notes, *told.notes]),
        seconds=told.seconds,
    )


def candidate(criterion: Criterion, policy: TabularPolicy, values: np.ndarray) -> Candidate:
    """A policy with its values, judged."""
    return Candidate(policy, values, float(criterion.value(values)), float(criterion.violation(values)))


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
