"""Pictures of solutions and of achievable regions; drawn with matplotlib, the extra ``arnpg[plot]``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from arnpg.report.canvas import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, new_figure, save_figure

if TYPE_CHECKING:
    from arnpg.solution import Solution
    from arnpg.tabular.region import Region

__all__ = ["Panel", "plot_region", "plot_regions", "plot_solution"]

MARKS = ((RED, "o"), (BLUE, "s"), (GREEN, "^"), (PURPLE, "D"), (ORANGE, "v"), (SKY, "P"))
NOTHING = 1e-16


class Panel(NamedTuple):
    """One achievable region with the answers in it; ``limits`` are ``(name, ">=" or "<=", value)``."""

    title: str
    region: Region
    answers: Mapping[str, Mapping[str, float]]
    limits: Sequence[tuple[str, str, float]] = ()


def plot_solution(solution: Solution, path: str | os.PathLike | None = None) -> Any:
    """Objective with its certified bound, and the gap, against steps; saved where a path is given."""
    figure = new_figure(9.0, 3.6)
    left, right = figure.subplots(1, 2)
    steps = np.arange(1, len(solution.trace) + 1)
    _draw_objective(left, solution, steps)
    _draw_gap(right, solution, steps)
    for axes in (left, right):
        axes.set_xlabel("macro steps")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=8)
    figure.suptitle(_shortened(f"{solution.method}: {solution.criterion}", 110), fontsize=10)
    return save_figure(figure, path)


def plot_region(
    region: Region,
    answers: Mapping[str, Mapping[str, float]],
    path: str | os.PathLike | None = None,
    *,
    limits: Sequence[tuple[str, str, float]] = (),
    title: str = "",
) -> Any:
    """The achievable values of two objectives, with answers marked: ``{"fair": solution.values, ...}``."""
    return plot_regions([Panel(title, region, answers, limits)], path)


def plot_regions(panels: Sequence[Panel], path: str | os.PathLike | None = None) -> Any:
    """Several achievable regions side by side."""
    figure = new_figure(5.2 * len(panels), 4.6)
    for axes, panel in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True):
        _draw_region(axes, panel)
    return save_figure(figure, path)


def _draw_objective(axes: Any, solution: Solution, steps: np.ndarray) -> None:
    trace = solution.trace
    mark = "o" if len(steps) <= 40 else ""
    axes.plot(steps, trace.objective, color=BLUE, marker=mark, markersize=3, label="objective of the step")
    if len(trace.bound):
        axes.plot(steps, trace.bound, color=ORANGE, linestyle="--", marker=mark, markersize=3, label="certified bound")
        finite = np.concatenate([trace.objective, trace.bound[np.isfinite(trace.bound)]])
        _zoom(axes, finite, solution)
    axes.axhline(solution.bound, color=GREY, linestyle=":", linewidth=1.2, label="optimum at most")
    axes.set_ylabel("objective")


def _zoom(axes: Any, shown: np.ndarray, solution: Solution) -> None:
    """A first bound far above everything else must not flatten the rest."""
    low = min(float(solution.trace.objective.min()), solution.objective)
    high = float(shown.max())
    near = solution.bound + 2.0 * (solution.bound - low)
    if high > near > solution.bound:
        axes.set_ylim(low - 0.1 * (near - low), near)


def _draw_gap(axes: Any, solution: Solution, steps: np.ndarray) -> None:
    trace = solution.trace
    bound = trace.bound if len(trace.bound) else np.full(len(steps), solution.bound)
    mark = "o" if len(steps) <= 40 else ""
    distance = np.abs(bound - trace.objective)
    axes.plot(steps, np.maximum(distance, NOTHING), color=BLUE, marker=mark, markersize=3, label="|bound - objective|")
    if trace.violation.max(initial=0.0) > 0:
        shown = np.where(trace.violation > 0, trace.violation, np.nan)
        axes.plot(steps, shown, color=RED, linestyle="--", marker=mark, markersize=3, label="violation")
    axes.axhline(max(solution.gap, NOTHING), color=GREY, linestyle=":", linewidth=1.2, label="gap of the answer")
    axes.set_yscale("log")
    axes.set_ylabel("gap (log scale)")


def _draw_region(axes: Any, panel: Panel) -> None:
    across, up = panel.region.names
    vertices = panel.region.vertices
    axes.fill(*vertices.T, facecolor=SKY, edgecolor=BLUE, alpha=0.25, linewidth=1.0, label="achievable")
    axes.plot(*np.vstack([vertices, vertices[:1]]).T, color=BLUE, linewidth=1.0)
    for name, sign, limit in panel.limits:
        if name in panel.region.names:
            draw = axes.axvline if name == across else axes.axhline
            draw(limit, color=GREY, linestyle="--", linewidth=1.2, label=f"{name} {sign} {limit:g}")
    for (label, values), (colour, mark) in zip(panel.answers.items(), MARKS * len(panel.answers), strict=False):
        place = (values[across], values[up])
        axes.plot(*place, mark, color=colour, markersize=9, markeredgecolor="white", label=label, linestyle="none")
    axes.set_xlabel(f"value of {across}")
    axes.set_ylabel(f"value of {up}")
    axes.set_title(panel.title, fontsize=10)
    axes.grid(alpha=0.3)
    axes.margins(0.08)
    axes.legend(fontsize=8, framealpha=0.9)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
