"""The chapter of a saved solution: what was asked, what is proved, how it came about, and the policy."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from arnpg.report.chapter import Chapter
from arnpg.report.figure import Figure, Panel, Series, Table
from arnpg.solution import Solution

__all__ = ["solution_chapter"]

STATES, STEPS = 200, 400


def solution_chapter(path: str | os.PathLike) -> Chapter:
    """Read the file and describe it."""
    solution = Solution.load(path)
    state = "certified" if solution.certified else "not certified"
    summary = (
        f"The policy's objective is {solution.objective:.9g}, and no policy that meets the limits is above "
        f"{solution.bound:.9g}: a gap of {solution.gap:.2g}, relative {solution.relative_gap:.2g}."
    )
    return Chapter(
        title=os.path.basename(os.fspath(path)),
        about=solution.criterion,
        state=state,
        summary=summary,
        figures=_figures(solution),
        tables=(_values(solution), _policy(solution)),
        facts=_facts(solution, path),
    )


def _figures(solution: Solution) -> tuple[Figure, ...]:
    trace = solution.trace
    if not len(trace):
        return ()
    steps = np.unique(np.linspace(0, len(trace) - 1, STEPS).astype(int))
    bound = trace.bound if len(trace.bound) else np.full(len(trace), solution.bound)
    line = lambda name, y: Series(name, _numbers(steps + 1), _numbers(np.asarray(y, float)[steps]))  # noqa: E731
    values = tuple(line(name, trace.values[:, index]) for index, name in enumerate(solution.values))
    objective = (line("objective of the step", trace.objective), line("certified bound", bound))
    distances = [line("|bound - objective|", np.abs(bound - trace.objective))]
    if trace.violation.max(initial=0.0) > 0:
        distances.append(line("violation", trace.violation))
    best = {"level": solution.bound, "level_label": "optimum at most"}
    gap = {"scale": "log-y", "level": solution.gap, "level_label": "gap of the answer"}
    panels = (
        Panel("objective", "macro steps", "objective", objective, **best),
        Panel("gap", "macro steps", "gap (log scale)", tuple(distances), **gap),
        Panel("values", "macro steps", "value (discounted reward)", values),
    )
    return (Figure("trace", f"How {solution.method} came to it", "", panels),)


def _values(solution: Solution) -> Table:
    limits: dict[str, list[tuple[str, float]]] = {}
    for label, price in solution.multipliers.items():
        name, sign, limit = label.rsplit(" ", 2)
        limits.setdefault(name, []).append((f"{sign} {limit}", price))
    rows = []
    for name, value in solution.values.items():
        known = limits.get(name, [])
        prices = ", ".join(f"{price:.6g}" for _, price in known)
        rows.append((name, f"{value:.9g}", ", ".join(limit for limit, _ in known), prices))
    return Table("Values of the policy", ("objective", "value", "limit", "price of the limit"), tuple(rows))


def _policy(solution: Solution) -> Table:
    """Probabilities of the actions; the first states of a large model."""
    chances = solution.policy.probabilities
    rows = []
    for state, row in enumerate(chances[:STATES]):
        taken = [(int(a), float(row[a])) for a in np.argsort(-row, kind="stable") if row[a] > 5e-7]
        rows.append((str(state), ", ".join(f"{action}: {chance:.6g}" for action, chance in taken[:10])))
    more = f", the first {STATES} of {len(chances)} states" if len(chances) > STATES else ""
    return Table(f"Policy{more}", ("state", "action: probability"), tuple(rows))


def _facts(solution: Solution, path: str | os.PathLike) -> tuple[tuple[str, str], ...]:
    return (
        ("file", os.fspath(path)),
        ("method", f"{solution.method}, {len(solution.trace)} steps in {solution.seconds:.3f} s"),
        ("bound by", solution.how),
        ("violation", f"{solution.violation:.2e}" if solution.violation else "none"),
        *(("note", note) for note in solution.notes),
    )


def _numbers(values: Any) -> tuple[float, ...]:
    return tuple(np.asarray(values, float).tolist())
