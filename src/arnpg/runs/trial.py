"""A trial: one call of the macro loop that survives whatever ends its process, and is computed once only.

Every so often, between two chunks, the new rows of the trace are appended to ``trace.bin`` and the carry is saved. The
result is always put together from these two, so that it is the same in every bit whether or not it was interrupted.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np

from arnpg.errors import ArnpgError, EnvironmentFault, SettingsError, StorageError
from arnpg.loop import Carry, Chunk, Run, Watch
from arnpg.method import Algorithm
from arnpg.runs.checkpoint import Checkpoints, Loaded
from arnpg.runs.fault_file import write_fault
from arnpg.runs.folder import RunFolder
from arnpg.runs.job import Job, job
from arnpg.runs.loggers import JsonlLogger, Logger, Loggers
from arnpg.runs.progress import Reporter, SilentReporter
from arnpg.runs.signals import Stop, listening
from arnpg.runs.trace import TraceFile

__all__ = ["About", "Every", "run_trial"]


class Every(NamedTuple):
    """When a checkpoint is due: after so many seconds or so many steps, whichever is first; at the end of a chunk."""

    seconds: float = 30.0
    steps: float = float("inf")


class About(NamedTuple):
    """What a run is about.

    Attributes:
        entries: names of the trace's entries.
        describe: a chunk in words.
        conclude: writes what belongs into a finished folder.
        environment: versions of the packages that step its environment; a run goes on with the same ones only.
        facts: for the summary.
    """

    entries: Mapping[str, Sequence[str]] = MappingProxyType({})
    describe: Callable[[Chunk], str] = lambda chunk: ""
    conclude: Callable[[Path, Run], None] = lambda folder, run: None
    environment: Mapping[str, str] = MappingProxyType({})
    facts: Mapping[str, Any] = MappingProxyType({})


def run_trial(
    folder: str | os.PathLike,
    algorithms: Algorithm | Sequence[Algorithm],
    steps: int,
    *,
    keys: Any = None,
    watch: Watch = Watch(),  # noqa: B008
    checkpoint_every: Every = Every(),  # noqa: B008
    resume: str = "strict",
    force: bool = False,
    config: Mapping[str, Any] | None = None,
    seed: int | None = None,
    loggers: Sequence[Logger] = (),
    progress: Reporter | None = None,
    parents: bool = False,
    kind: str = "trial",
    about: About = About(),  # noqa: B008
) -> Run:
    """Run ``steps`` macro steps in a folder: begin, continue from its last checkpoint, or return the result there.

    Args:
        folder: made if needed; one trial each.
        algorithms: one, or a sequence that runs as one batch.
        steps: macro steps ``K``.
        keys: one key, or one for each algorithm of a batch.
        watch: what to keep of the iterates.
        checkpoint_every: when a checkpoint is due.
        resume: ``"auto"`` goes back to the checkpoint before a damaged one; ``"strict"`` refuses.
        force: go on although ``about.environment`` has other versions than the run began with.
        config: plain data to record in ``config.json``; the numbers of the algorithms are in its hash anyway.
        seed: to record.
        loggers: beside ``metrics.jsonl``.
        progress: where fraction and warnings go.
        parents: make missing parents of the folder.
        kind: what continues it; see ``arnpg.cli.resume``.
        about: what the run is about, in words.

    Returns:
        The run as ``loop.run`` returns it, over all its steps.
    """
    if resume not in ("strict", "auto"):
        raise SettingsError(f"resume must be 'strict' or 'auto', got {resume!r}.")
    reporter, todo = progress or SilentReporter(), job(algorithms, steps, keys, watch)
    words = {**(config or {}), "steps": todo.steps, "batch": len(todo.algorithms), "fingerprint": todo.fingerprint()}
    entering = RunFolder.enter(folder, kind, words, seed=seed, parents=parents, environment=about.environment)
    with listening() as stop, entering as opened:
        _check_environment(opened, about.environment, force, reporter)
        trial = _Trial(opened, todo, Loggers(tuple(loggers), reporter.say), reporter, stop, checkpoint_every, about)
        result = trial.stored() if opened.finished else trial.work(resume)
    stop.deliver()
    if result is None:
        raise StorageError(f"{folder} stopped before its end.")
    reporter.update(1.0, "done")
    return result


class _Trial:
    """What the callback between two chunks needs."""

    def __init__(
        self,
        folder: RunFolder,
        todo: Job,
        loggers: Loggers,
        reporter: Reporter,
        stop: Stop,
        every: Every,
        about: About,
    ) -> None:
        self.folder, self.job, self.loggers, self.reporter, self.stop = folder, todo, loggers, reporter, stop
        self.every, self.about = every, about
        self.template, row = todo.shapes()
        self.checkpoints = Checkpoints(folder.checkpoints, folder.config_hash)
        self.trace = TraceFile(folder.trace, row, axis=1 if todo.batch else 0)
        self.metrics = JsonlLogger(folder.metrics)
        self.start, self.done, self.base, self.seconds = 0, 0, 0.0, 0.0
        self.carry: Carry | None = None
        self.pending: list[Any] = []
        self.saved_at, self.saved_step, self.failures = time.monotonic(), 0, 0

    def stored(self) -> Run:
        """The result of a finished folder."""
        found = self.checkpoints.latest(self.template)
        if found is None or found.step != self.job.steps:
            raise StorageError(f"{self.folder.path} is finished, but its last checkpoint is missing.")
        return self._result(found)

    def work(self, resume: str) -> Run | None:
        """Begin or continue; none where a signal stopped it."""
        self._restore(resume)
        self._open_logs()
        try:
            if self.done < self.job.steps:
                self._run()
        finally:
            self._close_logs()
        if self.done < self.job.steps:
            where = f"{self.folder.path}: stopped at step {self.done} of {self.job.steps}"
            self.reporter.say(f"{where}, saved; the same command continues it.")
            return None
        found = Loaded(self.done, self.carry, {"trace": self.trace.mark(), "seconds": self.seconds})
        result = self._result(found)
        self.about.conclude(self.folder.path, result)
        facts = {"steps": self.done, "seconds": self.seconds, **self.about.facts, **_last(result)}
        if changes := self.folder.environment_changes(self.about.environment):
            facts["environment_changes"] = changes
        self.folder.finish({"status": "finished", **facts})
        return result

    def _run(self) -> None:
        """The steps that are left; what was done is saved, whether they end well, early or with an error."""
        try:
            self.job.run(self.job.steps - self.done, self.carry, self.on_chunk)
        except ArnpgError as error:
            if isinstance(error, EnvironmentFault):
                write_fault(self.folder.path, error)
            if self.done > self.saved_step and not isinstance(error, StorageError):
                self.save()
            raise
        if self.saved_step < self.done:
            self.save()

    def on_chunk(self, chunk: Chunk) -> bool:
        """Take over a chunk, tell and log it, save if it is time to; true where a signal asks to stop."""
        before, self.done = self.done, self.start + chunk.done
        self.carry, self.seconds = chunk.carry, self.base + chunk.seconds
        self.pending.append((chunk.trace, chunk.rows))
        self.stop.patient = True
        for number, row in self.job.rows(chunk, before, self.about.entries):
            self._guarded("metrics", functools.partial(self.metrics.log, number, row))
            self.loggers.log(number, row)
        whole = chunk._replace(done=self.done, steps=self.job.steps, seconds=self.seconds)
        text = f"step {self.done} of {self.job.steps}"
        self.reporter.update(self.done / self.job.steps, f"{text}  {self.about.describe(whole)}".rstrip())
        late = time.monotonic() - self.saved_at >= self.every.seconds
        if self.done < self.job.steps and (late or self.done - self.saved_step >= self.every.steps):
            self._guarded("checkpoint", self.save)
        return self.stop.requested is not None

    def save(self) -> None:
        """The rows since the last checkpoint, then the carry."""
        self.saved_at = time.monotonic()
        self.metrics.flush()
        if self.pending:
            axis = 1 if self.job.batch else 0
            self.trace.append(jax.tree.map(lambda *leaves: np.concatenate(leaves, axis), *self.pending))
            self.pending.clear()
        self.checkpoints.save(self.done, self.carry, {"trace": self.trace.mark(), "seconds": self.seconds})
        self.saved_step, self.failures = self.done, 0

    def _restore(self, resume: str) -> None:
        """Go back to the last checkpoint and its part of the trace, or to the beginning."""
        found = self.checkpoints.latest(self.template, resume, lambda found: self.trace.resume(found.extra["trace"]))
        if found is None:
            self.trace.begin()
            return
        self.carry, self.base = found.tree, found.extra["seconds"]
        self.start = self.done = self.saved_step = found.step
        self.seconds = self.base
        if found.note:
            self.reporter.say(found.note)
        if changes := self.folder.changes():
            self.reporter.say(f"{self.folder.path} began with other versions: {', '.join(changes)}; bits may differ.")
        self.reporter.update(self.done / self.job.steps, f"continues at step {self.done}")

    def _open_logs(self) -> None:
        config = {**self.folder.about, "resumed_at": self.start}
        self.metrics.start(config)
        self.loggers.start(config)

    def _close_logs(self) -> None:
        self.loggers.close()
        try:
            self.metrics.close()
        except StorageError as error:
            self.reporter.say(f"the last metrics are lost: {error}")

    def _guarded(self, what: str, action: Callable[[], Any]) -> None:
        """The first failure in a row is reported and the run goes on; the second stops it."""
        try:
            action()
        except StorageError as error:
            self.failures += 1
            if self.failures > 1:
                raise
            self.reporter.say(f"{what} failed, the run goes on: {error}")

    def _result(self, found: Loaded) -> Run:
        trace, rows = self.trace.read(found.extra["trace"])
        return self.job.result(found.tree, trace, rows, found.extra["seconds"])


def _check_environment(folder: RunFolder, versions: Mapping[str, str], force: bool, reporter: Reporter) -> None:
    """Refuse to go on in an environment of other versions, unless that is what is wanted."""
    changes = folder.environment_changes(versions)
    if folder.finished or not changes:
        return
    told = f"{folder.path} began with other versions of its environment: {', '.join(changes)}"
    if not force:
        raise SettingsError(
            f"{told}; its steps may differ from here on. Install the old ones, begin anew in another folder, or go on "
            "all the same with --force (force=True)."
        )
    reporter.say(f"{told}; it goes on all the same.")


def _last(result: Run) -> dict[str, Any]:
    """What a summary shows: the values of the last step, for each algorithm of a batch."""
    values = np.asarray(result.trace.values)
    return {"values": values[..., -1, :].tolist()}
