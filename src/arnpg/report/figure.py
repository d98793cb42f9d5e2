"""A figure as plain data: what is drawn is what is stored, whichever way it is drawn."""

from __future__ import annotations

import dataclasses
from typing import Any

__all__ = ["Claim", "Figure", "Panel", "Report", "Series", "Table"]


@dataclasses.dataclass(frozen=True)
class Series:
    """One line; ``low`` and ``high`` are its band where there is one, ``note`` stands in the legend (a slope)."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Panel:
    """One pair of axes; ``scale`` is ``linear``, ``log`` (both) or ``log-y``; ``level`` is a line to compare with."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    scale: str = "linear"
    level: float | None = None
    level_label: str = ""


@dataclasses.dataclass(frozen=True)
class Figure:
    """Panels side by side, with the place in the paper they correspond to."""

    name: str
    title: str
    place: str
    panels: tuple[Panel, ...]


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim of the paper: the figure measured with its interval, and whether it holds; none where noise decides."""

    text: str
    place: str
    measured: str
    holds: bool | None


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of text under a heading."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True)
class Report:
    """Everything an experiment found."""

    experiment: str
    summary: str
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    tables: tuple[Table, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Report:
        """What ``to_json`` gave."""
        figures = tuple(
            Figure(f["name"], f["title"], f["place"], tuple(_panel(panel) for panel in f["panels"]))
            for f in data["figures"]
        )
        tables = tuple(
            Table(t["title"], tuple(t["columns"]), tuple(tuple(row) for row in t["rows"])) for t in data["tables"]
        )
        claims = tuple(Claim(**claim) for claim in data["claims"])
        return cls(data["experiment"], data["summary"], figures, claims, tables)


def _panel(data: dict[str, Any]) -> Panel:
    series = tuple(_series(line) for line in data["series"])
    plain: dict[str, Any] = {**data, "series": series}
    return Panel(**plain)


def _series(data: dict[str, Any]) -> Series:
    plain: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    return Series(**plain)
