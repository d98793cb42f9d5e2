"""A solution as sections for the terminal and as data for JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from arnpg.cli.terminal import Section

if TYPE_CHECKING:
    from arnpg.solution import Solution

__all__ = ["as_json", "sections"]


def sections(solution: Solution, *written: str | None) -> list[Section]:
    """Values with limits and prices, then what is proved."""
    limits: dict[str, list[tuple[str, str]]] = {}
    for label, price in solution.multipliers.items():
        name, sign, limit = label.rsplit(" ", 2)
        limits.setdefault(name, []).append((f"{sign} {limit}", f"{price:.6g}"))
    rows = []
    for name, value in solution.values.items():
        known = limits.get(name, [])
        cells = (name, f"{value:.9g}", ", ".join(limit for limit, _ in known), ", ".join(price for _, price in known))
        rows.append(cells if limits else cells[:2])
    header = ("objective", "value", "limit", "price") if limits else ("objective", "value")
    proved = [
        ("objective", f"{solution.objective:.12g}"),
        ("optimum at most", f"{solution.bound:.12g}"),
        ("gap", f"{solution.gap:.2e} (relative {solution.relative_gap:.1e})"),
        ("violation", f"{solution.violation:.2e}" if solution.violation else "none"),
        ("certified", "yes" if solution.certified else "no"),
        ("method", f"{solution.method}, {len(solution.trace)} steps in {solution.seconds:.3f} s"),
        ("bound by", solution.how),
        ("policy", repr(solution.policy)),
    ]
    proved += [("note", note) for note in solution.notes] + [("written", path) for path in written if path]
    return [Section(solution.criterion, rows, header), Section("", proved)]


def as_json(solution: Solution, path: str | None = None) -> dict[str, Any]:
    """Everything but the policy and the trace, which ``path`` holds; what is not a finite number is null."""
    states, actions = solution.policy.probabilities.shape
    found = {
        "status": "certified" if solution.certified else "not certified",
        "criterion": solution.criterion,
        "method": solution.method,
        "values": solution.values,
        "objective": solution.objective,
        "bound": solution.bound,
        "gap": solution.gap,
        "relative_gap": solution.relative_gap,
        "certified": solution.certified,
        "violation": solution.violation,
        "multipliers": solution.multipliers,
        "how": solution.how,
        "notes": list(solution.notes),
        "steps": len(solution.trace),
        "seconds": solution.seconds,
        "states": states,
        "actions": actions,
        "solution_file": path,
    }
    return _finite(found)


def _finite(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _finite(value) for key, value in tree.items()}
    if isinstance(tree, float) and not math.isfinite(tree):
        return None
    return tree
