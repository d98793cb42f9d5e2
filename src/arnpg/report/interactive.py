"""A ``Panel`` as data for Plotly: to hover, zoom, and switch lines on and off."""

from __future__ import annotations

import html
import math
from typing import Any

from arnpg.report.canvas import GREY, Style, styles
from arnpg.report.figure import Figure, Panel, Series
from arnpg.report.ranges import focus, legend, positive, reaches

__all__ = ["plots"]

GRID = "#e4e4e4"
LONG = 40  # characters of a label


def plots(figure: Figure) -> list[dict[str, Any]]:
    """One ``{"data", "layout"}`` for each panel, as plain JSON data; a series looks the same in all of them."""
    chosen = styles(series.name for panel in figure.panels for series in panel.series)
    return [{"data": _traces(panel, chosen), "layout": _layout(panel)} for panel in figure.panels]


def _traces(panel: Panel, chosen: dict[str, Style]) -> list[dict[str, Any]]:
    found = []
    for series in panel.series:
        found += [*_band(series, chosen[series.name], panel.scale), _line(series, chosen[series.name], panel.scale)]
    return found + _level(panel)


def _line(series: Series, style: Style, scale: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": _text(legend(series)),
        "legendgroup": _text(series.name),
        "x": _numbers(series.x),
        "y": _numbers(positive(series.y, scale)),
        "line": {"color": style.colour, "dash": style.web_dashes, "width": 2},
        "marker": {"symbol": style.web_mark, "size": 7, "maxdisplayed": 7, "line": {"color": "#ffffff", "width": 1}},
        "hovertemplate": "%{y:.5~g}",
    }


def _band(series: Series, style: Style, scale: str) -> list[dict[str, Any]]:
    """One closed outline; where a logarithmic axis ends, the band ends at its lowest mean."""
    if not (series.low and series.high):
        return []
    edges = (positive(edge, scale).tolist() for edge in (series.low, series.high))
    triples = list(zip(series.x, *edges, strict=True))
    floor = min((value for value in positive(series.y, scale).tolist() if math.isfinite(value)), default=1.0)
    shown = [(x, low if math.isfinite(low) else floor, high) for x, low, high in triples if math.isfinite(high)]
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [x for x, _, _ in shown] + [x for x, _, _ in reversed(shown)],
            "y": [high for _, _, high in shown] + [low for _, low, _ in reversed(shown)],
            "fill": "toself",
            "fillcolor": _faint(style.colour),
            "line": {"width": 0},
            "legendgroup": _text(series.name),
            "showlegend": False,
            "hoverinfo": "skip",
        }
    ]


def _level(panel: Panel) -> list[dict[str, Any]]:
    ends = [x for series in panel.series for x in series.x]
    if not reaches(panel) or not ends:
        return []
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": _text(panel.level_label),
            "showlegend": bool(panel.level_label),
            "x": [min(ends), max(ends)],
            "y": [panel.level, panel.level],
            "line": {"color": GREY, "dash": "2px,2px", "width": 1.5},
            "hoverinfo": "skip",
        }
    ]


def _layout(panel: Panel) -> dict[str, Any]:
    across, up = panel.scale == "log", panel.scale != "linear"
    vertical = _axis(panel.y_label, up)
    limits = focus(panel)
    return {
        "title": {"text": _text(panel.title), "font": {"size": 15}, "x": 0, "xref": "paper"},
        "xaxis": _axis(panel.x_label, across),
        "yaxis": vertical if limits is None else vertical | {"range": list(limits)},
        "hovermode": "x unified",
        "legend": {"orientation": "h", "y": -0.22, "yanchor": "top", "x": 0},
        "margin": {"l": 75, "r": 15, "t": 45, "b": 60},
        "height": 430,
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": "#222222"},
    }


def _axis(label: str, logarithmic: bool) -> dict[str, Any]:
    shared = {
        "title": {"text": _in_two_lines(label), "standoff": 8},
        "gridcolor": GRID,
        "zerolinecolor": GRID,
        "linecolor": "#888888",
        "automargin": True,
        "ticks": "outside",
        "hoverformat": ".6~g",
    }
    if logarithmic:
        minor = {"showgrid": True, "gridcolor": "#f3f3f3"}
        shared |= {"type": "log", "dtick": 1, "exponentformat": "power", "minor": minor}
    return shared


def _numbers(values: Any) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in values]


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"


def _in_two_lines(label: str) -> str:
    """The unit under a long label."""
    name, bracket, unit = label.partition(" (")
    return f"{_text(name)}<br>({_text(unit)}" if bracket and len(label) > LONG else _text(label)


def _text(text: str) -> str:
    """Plotly reads tags and entities in texts; here every text is text."""
    return html.escape(text, quote=False)
