"""One experiment in its run folder: stage by stage, each kept as soon as it is finished; then report and pictures."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from arnpg.report.chapter import verdict
from arnpg.report.stored import encode_report, read_report
from arnpg.runs.files import remove_temporaries, storage, write_atomic
from arnpg.runs.metrics import MetricsFile, read_metrics
from arnpg.runs.progress import Reporter
from arnpg.runs.stages import FolderStages

if TYPE_CHECKING:
    from arnpg.experiments.experiment import AbstractExperiment, Arrays
    from arnpg.report.figure import Report
    from arnpg.runs.folder import RunFolder

__all__ = ["Outcome", "carry_out", "stored"]

PULSE = 0.25
NEARLY = 0.95


class Outcome(NamedTuple):
    """A finished experiment."""

    folder: Path
    report: Report
    seconds: float
    fresh: bool
    note: str = ""


def carry_out(folder: RunFolder, experiment: AbstractExperiment, reporter: Reporter, seconds: float) -> Outcome:
    """Compute what is missing in a locked folder; ``seconds`` is about what the whole takes."""
    for name in ("stages", "plots"):
        if (folder.path / name).is_dir():
            remove_temporaries(folder.path / name)
    began, metrics = time.monotonic(), MetricsFile(folder.metrics, resumed_at=2**53)
    names = experiment.stages()
    kept = sum((folder.path / "stages" / f"{name}.npz").exists() for name in names)
    try:
        with _Pulse(reporter, names, kept, seconds) as pulse:
            timed = _Timed(FolderStages(folder, pulse), metrics, pulse)
            report = experiment.run(timed)
            write_atomic(folder.path / "report.json", encode_report(report))
            pulse.text = "pictures"
            note = _draw(report, folder.plots)
        rest = time.monotonic() - began - timed.seconds
        metrics.append(len(names) + 1, {"stage": "models, report, pictures", "seconds": rest})
    finally:
        metrics.close()
    summary = _summary(folder, experiment, report)
    folder.finish(summary)
    reporter.update(1.0, "done")
    return Outcome(folder.path, report, summary["seconds"], True, note)


def stored(folder: RunFolder) -> Outcome:
    """What a finished folder holds."""
    changes = folder.changes()
    note = f"It was made with other versions: {', '.join(changes)}." if changes else ""
    report = read_report(folder.path / "report.json")
    return Outcome(folder.path, report, float(folder.summary().get("seconds", 0.0)), False, note)


class _Timed:
    """Stages that note how long they took and that they are done."""

    def __init__(self, inner: FolderStages, metrics: MetricsFile, pulse: _Pulse) -> None:
        self._inner, self._metrics, self._pulse = inner, metrics, pulse
        self.seconds = 0.0

    def stage(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """As ``FolderStages.stage``."""
        began, computed = time.monotonic(), []
        self._pulse.text = name

        def noted() -> Arrays:
            computed.append(name)
            return compute()

        arrays = self._inner.stage(name, noted)
        if computed:
            taken = time.monotonic() - began
            self.seconds += taken
            self._metrics.append(self._pulse.names.index(name) + 1, {"stage": name, "seconds": taken})
            self._metrics.flush()
        self._pulse.advance(name)
        return arrays


class _Pulse:
    """Progress between two stages, by what a stage is expected to take; a thread moves it on while it computes."""

    def __init__(self, reporter: Reporter, names: tuple[str, ...], kept: int, seconds: float) -> None:
        self._reporter, self.names = reporter, names
        self._expected = max(seconds / (len(names) + 1), 0.1)
        self._done: set[str] = set()
        self._kept, self._began = kept, time.monotonic()
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self.text = names[0]

    def update(self, fraction: float, text: str = "") -> None:
        """Pass on."""
        with self._lock:
            self._reporter.update(fraction, text)

    def say(self, text: str) -> None:
        """Pass on."""
        with self._lock:
            self._reporter.say(text)

    def advance(self, name: str) -> None:
        """A stage is there."""
        self._done.add(name)
        self._began = time.monotonic()
        self._tell(0.0)

    def __enter__(self) -> _Pulse:
        self._tell(0.0)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(PULSE):
            self._tell(min((time.monotonic() - self._began) / self._expected, NEARLY))

    def _tell(self, share: float) -> None:
        done = max(len(self._done), self._kept)
        self.update((done + share) / (len(self.names) + 1), self.text)


def _draw(report: Report, folder: Path) -> str:
    """Every figure as PNG and SVG; a sentence where matplotlib is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        return 'no pictures: matplotlib is missing; install it with pip install "arnpg[plot]".'
    from arnpg.report.canvas import save_figure
    from arnpg.report.draw import draw

    with storage(folder):
        folder.mkdir(exist_ok=True)
        for figure in report.figures:
            canvas = draw(figure)
            for ending in (".png", ".svg"):
                target = folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', figure.name)}{ending}"
                temporary = target.with_name(f".{target.stem}.tmp{ending}")
                save_figure(canvas, temporary)
                temporary.replace(target)
    return ""


def _summary(folder: RunFolder, experiment: AbstractExperiment, report: Report) -> dict[str, Any]:
    columns = read_metrics(folder.metrics)
    pairs = zip(columns.get("stage", []), columns.get("seconds", []), strict=True)
    seconds = {str(name): float(value) for name, value in pairs}
    claims = [{"claim": c.text, "measured": c.measured, "verdict": verdict(c.holds)} for c in report.claims]
    return {
        "status": "finished",
        "experiment": experiment.name,
        "place": experiment.place,
        "about": experiment.about,
        "seconds": sum(seconds.values()),
        "stages": seconds,
        "claims": claims,
        "settings": meanings(type(experiment)),
    }


def meanings(kind: type) -> dict[str, str]:
    """What each setting means, from the ``Attributes:`` of the class."""
    _, _, text = (kind.__doc__ or "").partition("Attributes:\n")
    names = {field.name for field in dataclasses.fields(kind)}
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        head, colon, rest = line.strip().partition(": ")
        if colon and head in names:
            name = head
            found[name] = rest
        elif name and line.strip():
            found[name] += f" {line.strip()}"
    return {name: meaning.replace("``", "") for name, meaning in found.items()}
