"""The chapter of a run folder, finished or not, read from its files alone."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from arnpg.report.chapter import Chapter, Setting
from arnpg.report.figure import Figure, Panel, Report, Series, Table
from arnpg.report.stored import read_report
from arnpg.report.trained_chapter import trained_chapter
from arnpg.runs.folder import RunFolder
from arnpg.runs.metrics import read_metrics
from arnpg.runs.progress import duration

__all__ = ["run_chapter", "shown"]

SHOWN, PANELS = 400, 12


def run_chapter(path: str | os.PathLike) -> Chapter:
    """Everything that the folder holds, in words; an unfinished run says what is missing."""
    folder = RunFolder.open(path)
    summary = folder.summary() if folder.finished else {}
    state = "finished" if summary else f"not finished; `arnpg resume {folder.path}` continues it"
    if (stored := folder.path / "trained.npz").is_file():
        return _trained(folder, summary, trained_chapter(stored))
    if folder.kind != "reproduce":
        return _trial(folder, summary, state)
    name = str(folder.config.get("experiment", folder.path.name))
    stored = folder.path / "report.json"
    report = read_report(stored) if summary or stored.is_file() else Report(name, "", (), ())
    return Chapter(
        title=name,
        about="; ".join(filter(None, [summary.get("place", ""), summary.get("about", "")])),
        state=state,
        summary=report.summary,
        claims=report.claims,
        figures=report.figures,
        tables=report.tables,
        settings=_settings(folder.config.get("settings", {}), summary.get("settings", {})),
        facts=(*_facts(folder, summary), *_stages(folder, summary)),
    )


def _trained(folder: RunFolder, summary: dict[str, Any], chapter: Chapter) -> Chapter:
    """A finished training: what its archive says, with the facts of its folder."""
    facts = (*chapter.facts[1:], *_facts(folder, summary))
    return dataclasses.replace(chapter, title=folder.path.name, facts=facts)


def _trial(folder: RunFolder, summary: dict[str, Any], state: str) -> Chapter:
    """A run of the macro loop: its metrics as figures, its last values as a table."""
    values = np.atleast_1d(np.array(summary.get("values", []), float)).reshape(-1)
    rows = tuple((str(index), f"{value:.9g}") for index, value in enumerate(values))
    return Chapter(
        title=folder.path.name,
        about=f"a run of kind {folder.kind}",
        state=state,
        figures=_curves(read_metrics(folder.metrics), folder.path.name) if folder.metrics.is_file() else (),
        tables=(Table("Values of the last step", ("index", "value"), rows),) if rows else (),
        settings=_settings(folder.config, {}),
        facts=_facts(folder, summary),
    )


def _curves(columns: Mapping[str, np.ndarray], name: str) -> tuple[Figure, ...]:
    """One panel for each group of columns: ``values/0`` and ``values/1`` belong together."""
    groups: dict[str, list[str]] = {}
    for column, data in columns.items():
        if column != "step" and data.dtype != object:
            groups.setdefault(column.split("/")[0], []).append(column)
    if "step" not in columns or not groups:
        return ()
    chosen = np.unique(np.linspace(0, len(columns["step"]) - 1, SHOWN).astype(int))
    panels = [
        Panel(group, "macro steps", group, tuple(_series(columns, member, chosen) for member in members))
        for group, members in list(groups.items())[:PANELS]
    ]
    return (Figure(name, "Metrics against macro steps", "", tuple(panels)),)


def _series(columns: Mapping[str, np.ndarray], member: str, chosen: np.ndarray) -> Series:
    x, y = (tuple(columns[name][chosen].astype(float).tolist()) for name in ("step", member))
    return Series(member, x, y)


def _settings(values: Mapping[str, Any], meanings: Mapping[str, str]) -> tuple[Setting, ...]:
    return tuple(Setting(name, shown(value), meanings.get(name, "")) for name, value in values.items())


def shown(value: Any) -> str:
    """A setting as people write it."""
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _facts(folder: RunFolder, summary: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    about = folder.about
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    facts = [
        ("command", shlex.join(map(str, about.get("command", [])))),
        ("folder", str(folder.path)),
        ("begun", str(about.get("created", "")).replace("T", " ")),
        ("computing time", duration(summary["seconds"]) if "seconds" in summary else ""),
        ("seed", "" if about.get("seed") is None else str(about["seed"])),
        ("versions", f"{versions}, Python {about['python']}"),
        ("environment", ", ".join(f"{name} {version}" for name, version in about.get("environment", {}).items())),
        ("went on with", ", ".join(summary.get("environment_changes", []))),
        ("machine", str(about.get("platform", ""))),
        ("configuration", f"SHA-256 {folder.config_hash}"),
    ]
    return tuple((label, text) for label, text in facts if text)


def _stages(folder: RunFolder, summary: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Seconds of each stage; for an unfinished run the stages that are there."""
    if folder.metrics.is_file():
        columns = read_metrics(folder.metrics)
        pairs = zip(columns.get("stage", []), columns.get("seconds", []), strict=True)
        text = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in dict(pairs).items())
        return (("stages" if summary else "stages so far", text),) if text else ()
    return ()
