"""Pictures of trade-offs, drawn with matplotlib, the extra ``arnpg[plot]``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from arnpg.report.canvas import BLUE, GREY, ORANGE, RED, new_figure, save_figure

if TYPE_CHECKING:
    from arnpg.tradeoffs import Tradeoff

__all__ = ["plot_tradeoff"]


def plot_tradeoff(found: Tradeoff, path: str | os.PathLike | None = None) -> Any:
    """Optimum and price against the limit, or the Pareto surface; saved where a path is given."""
    if found.swept:
        figure = new_figure(9.0, 3.6)
        _draw_sweep(figure.subplots(1, 2), found)
    elif len(found.names) == 2:
        figure = new_figure(5.2, 4.2)
        _draw_front(figure.subplots(), found)
    else:
        figure = new_figure(12.0, 3.8)
        for axes, (across, up) in zip(figure.subplots(1, 3), ((0, 1), (0, 2), (1, 2)), strict=True):
            _draw_projection(axes, found, across, up)
    return save_figure(figure, path)


def _draw_sweep(panels: Any, found: Tradeoff) -> None:
    """The optimum, and how much a unit of the limit is worth."""
    order = np.argsort(found.levels)
    levels, name = found.levels[order], found.names[0]
    solved = [found.solutions[i] for i in order]
    panels[0].plot(levels, found.objective[order], "o-", color=BLUE, markersize=4, label="optimum")
    for level, solution in zip(levels, solved, strict=True):
        if solution is None:
            panels[0].axvline(level, color=RED, linestyle=":", linewidth=1.2)
    if any(solution is None for solution in solved):
        panels[0].plot([], [], color=RED, linestyle=":", label="proved infeasible")
    prices = [np.nan if s is None else _price(s.multipliers, name) for s in solved]
    panels[1].plot(levels, prices, "s-", color=ORANGE, markersize=4, label="price of the limit")
    panels[0].set_ylabel("objective")
    panels[1].set_ylabel("objective for one unit of the limit")
    for axes in panels:
        axes.set_xlabel(f"limit on {name}")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=8)


def _price(multipliers: dict[str, float], name: str) -> float:
    return next(price for label, price in multipliers.items() if label.rsplit(" ", 2)[0] == name)


def _draw_front(axes: Any, found: Tradeoff) -> None:
    """The certified points and the lines above which no policy comes."""
    across, up = (_values(found, place) for place in (0, 1))
    order = np.argsort(across)
    axes.plot(across[order], up[order], "o-", color=BLUE, markersize=4, label="best policies")
    _outer(axes, found, across, up)
    _label(axes, found, 0, 1)


def _outer(axes: Any, found: Tradeoff, across: np.ndarray, up: np.ndarray) -> None:
    """Where neighbouring bounds ``<w, v> <= bound`` meet: nothing achievable lies beyond."""
    corners = []
    for first, second in zip(range(len(across) - 1), range(1, len(across)), strict=True):
        rows = found.levels[[first, second]]
        if abs(np.linalg.det(rows)) > 1e-12 * np.abs(rows).max() ** 2:
            corners.append(np.linalg.solve(rows, found.bound[[first, second]]))
    if corners:
        axes.plot(*np.array(corners).T, "x", color=GREY, markersize=5, label="nothing beyond")


def _draw_projection(axes: Any, found: Tradeoff, across: int, up: int) -> None:
    """Two of three objectives; the third is the colour."""
    third = ({0, 1, 2} - {across, up}).pop()
    shown = axes.scatter(_values(found, across), _values(found, up), c=_values(found, third), cmap="viridis", s=28)
    axes.figure.colorbar(shown, ax=axes, label=_named(found, third))
    _label(axes, found, across, up)


def _values(found: Tradeoff, place: int) -> np.ndarray:
    name = found.names[place]
    return -found.values(name[1:]) if name.startswith("-") else found.values(name)


def _named(found: Tradeoff, place: int) -> str:
    return f"value of {found.names[place]}"


def _label(axes: Any, found: Tradeoff, across: int, up: int) -> None:
    axes.set_xlabel(_named(found, across))
    axes.set_ylabel(_named(found, up))
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8)
