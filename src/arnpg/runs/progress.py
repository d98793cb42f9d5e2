"""How far the whole is: a bar with the remaining time on a terminal, now and then a plain line elsewhere.

The whole is made of parts with weights (expected seconds, or anything proportional); each part reports its fraction.
Everything goes to standard error, and a standard error that is closed, full or missing is no error.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import warnings
from collections.abc import Mapping
from typing import Any, Protocol, TextIO

__all__ = ["Part", "Progress", "Reporter", "SilentReporter", "duration"]

PLAIN_AFTER, PLAIN_EVERY, BAR_EVERY = 2.0, 5.0, 0.1


class Reporter(Protocol):
    """What a run tells while it is under way."""

    def update(self, fraction: float, text: str = "") -> None:
        """So much of this run is done."""

    def say(self, text: str) -> None:
        """Something that the user should read."""


class SilentReporter:
    """For library use: no progress, and what should be read as a Python warning."""

    def update(self, fraction: float, text: str = "") -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Warn."""
        warnings.warn(text, stacklevel=2)


class Progress:
    """The progress of a whole; use it in a ``with`` block."""

    def __init__(self, parts: Mapping[str, float], *, stream: TextIO | None = None, quiet: bool = False) -> None:
        """``parts`` maps names to weights, in the order they will run."""
        self._weights = dict(parts)
        self._done = dict.fromkeys(parts, 0.0)
        self._first: dict[str, float] = {}
        self._stream = _Forgiving(sys.stderr if stream is None else stream)
        self._quiet = quiet
        self._began = time.monotonic()
        self._next = self._began
        self._bar: Any = None
        self._live = not quiet and self._stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
        if not self._live:
            self._next += PLAIN_AFTER

    def part(self, name: str) -> Part:
        """Where the part of this name reports."""
        return Part(self, name)

    def remaining(self) -> float:
        """Seconds left for the whole, by the pace so far; what was there before this start does not count as pace."""
        total = sum(self._weights.values())
        done = sum(weight * self._done[name] for name, weight in self._weights.items())
        found = sum(self._weights[name] * first for name, first in self._first.items())
        if done <= found:
            return float("inf") if done < total else 0.0
        return (time.monotonic() - self._began) * (total - done) / (done - found)

    def fraction(self) -> float:
        """How much of the whole is done."""
        total = sum(self._weights.values())
        return sum(weight * self._done[name] for name, weight in self._weights.items()) / total if total else 1.0

    def update(self, name: str, fraction: float, text: str = "") -> None:
        """Part ``name`` is done to this ``fraction``; its first report is what it began with."""
        self._first.setdefault(name, fraction)
        self._done[name] = min(max(fraction, 0.0), 1.0)
        now = time.monotonic()
        if self._quiet or now < self._next:
            return
        self._next = now + (BAR_EVERY if self._live else PLAIN_EVERY)
        if self._live:
            self._draw(name, text)
            return
        left = f"{duration(self.remaining())} left"
        words = [f"{self.fraction():4.0%}", left, name, *([text] if text else [])]
        self._stream.write("  ".join(words) + "\n")
        self._stream.flush()

    def say(self, text: str) -> None:
        """A line that stays, also where progress is quiet."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
            return
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def close(self) -> None:
        """Leave a clean terminal behind."""
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.stop()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _draw(self, name: str, text: str) -> None:
        if self._bar is None:
            self._bar = _bar(self._stream)
            self._bar.start()
            self._bar.add_task("", total=1.0)
        words = f"{duration(self.remaining())} left  {name}  {text}"
        self._bar.update(self._bar.task_ids[0], completed=self.fraction(), description=words)
        self._bar.refresh()


class Part:
    """One part of a whole, as the run that it is sees it."""

    def __init__(self, whole: Progress, name: str) -> None:
        """Made by ``Progress.part``."""
        self._whole, self._name = whole, name

    def update(self, fraction: float, text: str = "") -> None:
        """So much of this part is done."""
        self._whole.update(self._name, fraction, text)

    def say(self, text: str) -> None:
        """Something that the user should read."""
        self._whole.say(text)


def duration(seconds: float) -> str:
    """``2 h 05 min``, ``3 min 20 s``, ``12 s``; a question mark where nothing is known yet."""
    if not seconds < 1e9:
        return "?"
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{whole} s"


def _bar(stream: Any) -> Any:
    """A bar that draws when it is told to, without a thread of its own."""
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(bar_width=24), TaskProgressColumn(), TextColumn("{task.description}", markup=False))
    plain = bool(os.environ.get("NO_COLOR"))
    console = Console(file=stream, no_color=plain, force_terminal=True)
    return Bar(
        *columns, console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
    )


class _Forgiving:
    """A stream that may be closed, full or missing."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            self._stream.flush()

    def isatty(self) -> bool:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            return self._stream.isatty()
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
