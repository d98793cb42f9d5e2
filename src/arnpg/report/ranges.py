"""What a panel shows, whichever way it is drawn: legends, values on logarithmic axes, and where to look."""

from __future__ import annotations

from typing import Any

import numpy as np

from arnpg.report.figure import Panel, Series

__all__ = ["focus", "legend", "positive", "reaches"]

EARLY, WORTH_IT, MARGIN = 40, 3.0, 0.08


def legend(series: Series) -> str:
    """The name, with the note behind it."""
    return f"{series.name}, {series.note}" if series.note else series.name


def positive(values: Any, scale: str) -> np.ndarray:
    """As floats, without what a logarithmic axis cannot show."""
    found = np.asarray(values, float)
    return found if scale == "linear" else np.where(found > 0, found, np.nan)


def reaches(panel: Panel) -> bool:
    """Whether the level to compare with can be drawn."""
    return panel.level is not None and (panel.scale == "linear" or panel.level > 0)


def focus(panel: Panel) -> tuple[float, float] | None:
    """The range of ``y`` from the fortieth part of the steps on, where the first steps would flatten all others."""
    lines = [(series.x, line) for series in panel.series for line in (series.y, series.low, series.high) if line]
    if panel.scale != "linear" or not lines:
        return None
    x, y = (np.concatenate([np.asarray(pair[index], float) for pair in lines]) for index in (0, 1))
    late = y[x >= np.nanmax(x) / EARLY]
    late = late if panel.level is None else np.append(late, panel.level)
    if not np.isfinite(late).any():
        return None
    low, high = float(np.nanmin(late)), float(np.nanmax(late))
    if np.nanmax(y) - np.nanmin(y) < WORTH_IT * (high - low) or high == low:
        return None
    margin = MARGIN * (high - low)
    return low - margin, high + margin
