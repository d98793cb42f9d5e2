"""Where rows of metrics go: any object with ``start(config)``, ``log(step, row)`` and ``close()``.

``config["resumed_at"]`` is the step that the run continues from, 0 for a new one: rows after it will come again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from arnpg.errors import SettingsError
from arnpg.runs.metrics import MetricsFile

__all__ = ["JsonlLogger", "Logger", "Loggers", "TensorBoardLogger"]


class Logger(Protocol):
    """What is to be written for one more place to log to."""

    def start(self, config: Mapping[str, Any]) -> None:
        """Begin, or continue at ``config["resumed_at"]``."""

    def log(self, step: int, row: Mapping[str, float]) -> None:
        """One row, by names such as ``values/0``."""

    def close(self) -> None:
        """Write what is left."""


class JsonlLogger:
    """Rows into a file of JSON lines, which ``read_metrics`` reads back bit by bit."""

    def __init__(self, path: str | os.PathLike) -> None:
        """Nothing is opened yet."""
        self._path = Path(path)
        self._file: MetricsFile | None = None

    def start(self, config: Mapping[str, Any]) -> None:
        """Open the file and cut what follows the step resumed at."""
        self._file = MetricsFile(self._path, config.get("resumed_at", 0))

    def log(self, step: int, row: Mapping[str, float]) -> None:
        """Append one row."""
        if self._file is not None:
            self._file.append(step, row)

    def flush(self) -> None:
        """Bring the rows to the file."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Write the rest; a second call does nothing."""
        if self._file is not None:
            self._file.close()


class TensorBoardLogger:
    """Rows as scalars for TensorBoard, through tensorboardX (``pip install "arnpg[tensorboard]"``)."""

    def __init__(self, folder: str | os.PathLike) -> None:
        """Refuse at once where tensorboardX is missing."""
        try:
            from tensorboardX import SummaryWriter
        except ImportError as error:
            raise SettingsError(
                'TensorBoardLogger needs tensorboardX; install it with pip install "arnpg[tensorboard]".'
            ) from error
        self._make: Callable[..., Any] = SummaryWriter
        self._folder = str(folder)
        self._writer: Any = None

    def start(self, config: Mapping[str, Any]) -> None:
        """Open an event file; on resume TensorBoard forgets the steps that will come again."""
        resumed = config.get("resumed_at", 0)
        # tensorboardX names its files by the second: without a suffix a quick resume would overwrite the one before.
        suffix, purge = f".{time.time_ns()}", resumed + 1 if resumed else None
        self._writer = self._make(logdir=self._folder, purge_step=purge, filename_suffix=suffix)

    def log(self, step: int, row: Mapping[str, float]) -> None:
        """One scalar for each entry that is a number."""
        for name, value in row.items():
            if isinstance(value, int | float):
                self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write the rest; a second call does nothing."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class Loggers:
    """The user's loggers as one; one that raises is reported and left out, and the run goes on."""

    def __init__(self, loggers: tuple[Logger, ...], say: Callable[[str], None]) -> None:
        """Nothing is started yet."""
        self._loggers, self._say = list(loggers), say

    def start(self, config: Mapping[str, Any]) -> None:
        """Start each."""
        self._each(lambda logger: logger.start(config))

    def log(self, step: int, row: Mapping[str, float]) -> None:
        """Log to each."""
        self._each(lambda logger: logger.log(step, row))

    def close(self) -> None:
        """Close each."""
        self._each(lambda logger: logger.close())

    def _each(self, action: Callable[[Logger], None]) -> None:
        for logger in list(self._loggers):
            try:
                action(logger)
            except Exception as error:  # a third party's; nothing of it is worth the run
                self._loggers.remove(logger)
                self._say(f"{type(logger).__name__} failed and is left out from here on: {error}")
