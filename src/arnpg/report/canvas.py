"""What every picture here shares: colours, marks, and figures that belong to nobody's window.

Colours are Okabe and Ito's, told apart by colour-blind readers; each comes with a line style and a mark of its own, so
that nothing relies on colour alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from arnpg.errors import SettingsError
from arnpg.storage import storage

__all__ = ["BLUE", "GREEN", "GREY", "ORANGE", "PURPLE", "RED", "SKY", "Style", "new_figure", "save_figure", "styles"]

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#6E6E6E",
)


class Style(NamedTuple):
    """How a series is drawn: colour, dashes and mark, in the words of matplotlib and of Plotly."""

    colour: str
    dashes: Any
    mark: str
    web_dashes: str
    web_mark: str


STYLES = (
    Style(BLUE, "-", "o", "solid", "circle"),
    Style(RED, (0, (6, 2)), "s", "dash", "square"),
    Style(GREEN, (0, (6, 2, 1, 2)), "^", "dashdot", "triangle-up"),
    Style(PURPLE, (0, (1.5, 1.5)), "D", "dot", "diamond"),
    Style(ORANGE, (0, (10, 3)), "v", "longdash", "triangle-down"),
    Style(SKY, (0, (10, 2, 1.5, 2)), "P", "longdashdot", "cross"),
    Style("#000000", (0, (3, 1, 1, 1, 1, 1)), "X", "5px,2px,2px,2px,2px,2px", "x"),
)


def styles(names: Iterable[str]) -> dict[str, Style]:
    """A style for each name, in the order of first appearance; beyond seven they repeat."""
    return {name: STYLES[index % len(STYLES)] for index, name in enumerate(dict.fromkeys(names))}


def new_figure(width: float, height: float) -> Any:
    """A matplotlib figure of its own, outside pyplot: no window, no global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SettingsError('plots need matplotlib; install it with pip install "arnpg[plot]".') from error
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: str | os.PathLike | None, dpi: int = 150) -> Any:
    """The figure, saved where a path is given; equal figures make equal files."""
    if path is None:
        return figure
    from matplotlib import rc_context

    ending = Path(path).suffix.lower()
    if ending and ending[1:] not in figure.canvas.get_supported_filetypes():
        raise SettingsError(f"path {os.fspath(path)!r} cannot be drawn to; let it end in .png, .svg or .pdf.")
    date = {".svg": "Date", ".pdf": "CreationDate"}.get(ending)
    with storage(path), rc_context({"svg.hashsalt": "arnpg"}):
        figure.savefig(path, dpi=dpi, metadata={date: None} if date else None)
    return figure
