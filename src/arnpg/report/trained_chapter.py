"""The chapter and the pictures of a trained run: values against their limits, multipliers, and the seeds one by one."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from arnpg.report.chapter import Chapter, Setting
from arnpg.report.figure import Figure, Panel, Series, Table
from arnpg.trained import TrainedRun

__all__ = ["draw_training", "trained_chapter", "training_figure"]

SHOWN = 300


def draw_training(run: TrainedRun, path: str | os.PathLike | None = None) -> Any:
    """The matplotlib figure, saved where a path is given."""
    from arnpg.report.draw import draw

    return draw(training_figure(run), path)


def training_figure(run: TrainedRun) -> Figure:
    """Each objective, and the multipliers: mean over seeds with one standard deviation."""
    limits: dict[str, float] = {}
    for label in run.labels:
        name, _, limit = label.rsplit(" ", 2)
        limits[name] = float(limit)
    panels = [
        Panel(
            name,
            "iterations",
            name,
            (_series(run, name, run.trace.values[:, :, index]),),
            level=limits.get(name),
            level_label="limit" if name in limits else "",
        )
        for index, name in enumerate(run.names)
    ]
    if len(run.labels) == run.trace.dual.shape[-1] and run.labels:
        series = tuple(_series(run, label, run.trace.dual[:, :, i]) for i, label in enumerate(run.labels))
        panels.append(Panel("multipliers", "iterations", "multiplier", series))
    count = f"{len(run.seeds)} seed{'s' if len(run.seeds) > 1 else ''}"
    return Figure("training", f"{run.method}, {count}: {run.criterion}", "", tuple(panels))


def trained_chapter(path: str | os.PathLike) -> Chapter:
    """Read the file and describe it."""
    run = TrainedRun.load(path)
    count = f"{int(run.feasible.sum())} of {len(run.seeds)} seeds"
    kept = f"{count} keep all limits" if run.labels else "there are no limits"
    values = ", ".join(f"{name} {value}" for name, value in run.values.items())
    return Chapter(
        title=os.path.basename(os.fspath(path)),
        about=f"{run.environment}: {run.criterion}",
        state="finished",
        summary=f"At the end, {values}; {kept}.",
        figures=(training_figure(run),),
        tables=(_values(run), _seeds(run)),
        settings=tuple(Setting(name, str(value)) for name, value in run.settings.items()),
        facts=(
            ("file", os.fspath(path)),
            ("method", f"{run.method}, {run.trace.iterations[-1]} iterations in {run.seconds:.0f} s"),
            ("environment steps", f"{run.trace.env_steps[-1]:,} a seed"),
            ("reproducible", "yes" if run.reproducible else "no"),
            *(("note", text) for text in run.notes),
        ),
    )


def _values(run: TrainedRun) -> Table:
    limits: dict[str, list[str]] = {}
    for label, broken in run.violations.items():
        name, sign, limit = label.rsplit(" ", 2)
        limits.setdefault(name, []).append(f"{sign} {limit}: kept by {int((broken == 0).sum())} of {len(broken)}")
    rows = tuple((name, str(value), ", ".join(limits.get(name, []))) for name, value in run.values.items())
    return Table("Values, means of the last 20 iterations", ("objective", "mean over seeds [95 %]", "limit"), rows)


def _seeds(run: TrainedRun) -> Table:
    rows = []
    for seed, final, feasible in zip(run.seeds, run.final, run.feasible, strict=True):
        rows.append((str(seed), *(f"{value:.4g}" for value in final), "yes" if feasible else "no"))
    return Table("Seeds", ("seed", *run.names, "all limits kept"), tuple(rows))


def _series(run: TrainedRun, name: str, rows: np.ndarray) -> Series:
    chosen = np.unique(np.linspace(0, len(run.trace) - 1, SHOWN).round().astype(int))
    mean = rows.mean(axis=0)
    spread = rows.std(axis=0, ddof=1) if len(rows) > 1 else 0 * mean
    x, y, low, high = (
        tuple(np.asarray(line, float)[chosen].tolist())
        for line in (run.trace.iterations, mean, mean - spread, mean + spread)
    )
    return Series(name, x, y, low, high) if len(rows) > 1 else Series(name, x, y)
