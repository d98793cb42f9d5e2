"""Draws a ``Figure`` with matplotlib (``arnpg[plot]``), for papers and pages that stand still: PNG, SVG, PDF."""

from __future__ import annotations

import os
import textwrap
from typing import Any

import numpy as np

from arnpg.report.canvas import GREY, Style, new_figure, save_figure, styles
from arnpg.report.figure import Figure, Panel, Series
from arnpg.report.ranges import focus, legend, positive, reaches

__all__ = ["draw"]

WIDTH, HEIGHT, ALONE, ACROSS = 4.5, 3.7, 6.2, 2
MARKS = 6  # on a line


def draw(figure: Figure, path: str | os.PathLike | None = None, *, dpi: int = 150) -> Any:
    """The panels, two in a row; returns the matplotlib figure, saved where a path is given."""
    count = len(figure.panels)
    across = min(ACROSS, count) if count % ACROSS == 0 else count
    down = -(-count // across)
    wide = WIDTH * across if count > 1 else ALONE
    canvas = new_figure(wide, HEIGHT * down + 0.35)
    chosen = styles(series.name for panel in figure.panels for series in panel.series)
    for axes, panel in zip(canvas.subplots(down, across, squeeze=False).flat, figure.panels, strict=True):
        _draw_panel(axes, panel, chosen)
    place = f" ({figure.place})" if figure.place else ""
    title = "\n".join(textwrap.wrap(figure.title + place, int(14 * wide)))
    canvas.suptitle(_plain(title), fontsize=11)
    canvas.draw_without_rendering()
    canvas.set_layout_engine("none")  # laid out once, however often it is saved
    return save_figure(canvas, path, dpi)


def _draw_panel(axes: Any, panel: Panel, chosen: dict[str, Style]) -> None:
    for order, series in enumerate(panel.series):
        _draw_series(axes, series, chosen[series.name], panel.scale, order / max(len(panel.series), 1))
    if panel.level is not None and reaches(panel):
        label = _plain(panel.level_label) or None
        axes.axhline(panel.level, color=GREY, linestyle=(0, (2, 2)), linewidth=1.2, zorder=1, label=label)
    if panel.scale == "log":
        axes.set_xscale("log")
    if panel.scale != "linear":
        axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter("")
    _zoom(axes, panel)
    axes.set_xlabel(_plain(panel.x_label), fontsize=9)
    axes.set_ylabel(_plain(panel.y_label), fontsize=9)
    axes.set_title(_plain(panel.title), fontsize=10)
    axes.grid(alpha=0.3, linewidth=0.6)
    if panel.series or panel.level_label:
        axes.legend(fontsize=8, framealpha=0.85, edgecolor="none", handlelength=3.2)


def _draw_series(axes: Any, series: Series, style: Style, scale: str, shift: float) -> None:
    """Marks sit at other places on each line, so that lines on top of each other are both seen."""
    x, y = positive(series.x, "linear"), positive(series.y, scale)
    if series.low and series.high:
        axes.fill_between(
            x, positive(series.low, scale), positive(series.high, scale), color=style.colour, alpha=0.16, linewidth=0
        )
    places = _places(x, "log" if scale == "log" else "linear", shift)
    look = {"color": style.colour, "linestyle": style.dashes, "linewidth": 1.6}
    marks = {"marker": style.mark, "markersize": 5.5, "markevery": places, "markeredgecolor": "white"}
    axes.plot(x, y, label=_plain(legend(series)), markeredgewidth=0.6, **look, **marks)


def _places(x: np.ndarray, scale: str, shift: float) -> list[int]:
    """Indices at about even distances on the axis."""
    if len(x) <= MARKS:
        return list(range(len(x)))
    position = np.log(x) if scale == "log" and (x > 0).all() else x
    targets = position[0] + (np.arange(MARKS) + 0.2 + 0.6 * shift) / MARKS * (position[-1] - position[0])
    return sorted({int(np.abs(position - target).argmin()) for target in targets})


def _zoom(axes: Any, panel: Panel) -> None:
    limits = focus(panel)
    if limits is not None:
        axes.set_ylim(*limits)


def _plain(text: str) -> str:
    """Text that matplotlib shall not read as mathematics."""
    return text.replace("$", r"\$")
