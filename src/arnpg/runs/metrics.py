"""``metrics.jsonl``: one JSON object a row, exact in every bit of every float, readable by anything that reads JSON.

NaN is ``null`` and the infinities are strings, since strict readers know neither.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from arnpg.errors import StorageError
from arnpg.runs.files import storage, write_all

__all__ = ["MetricsFile", "read_metrics"]

FLUSH_SECONDS = 1.0
FLUSH_ROWS = 1000


class MetricsFile:
    """Rows appended in memory and written together: once a second, every thousand rows, at checkpoints, at the end."""

    def __init__(self, path: Path, resumed_at: int = 0) -> None:
        """Continue the file after step ``resumed_at``: later rows, and a last line torn by a kill, are cut off."""
        self.path = path
        with storage(path):
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            self._end = _kept_bytes(path, resumed_at)
            os.ftruncate(self._handle, self._end)
        self._rows: list[str] = []
        self._flushed = time.monotonic()

    def append(self, step: int, row: Mapping[str, Any]) -> None:
        """Add one row; it reaches the file at the next flush."""
        self._rows.append(_line(step, row))
        if len(self._rows) >= FLUSH_ROWS or time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what has come together; after a failure nothing of it is in the file and all of it is kept."""
        data = "".join(self._rows).encode()
        self._flushed = time.monotonic()
        with storage(self.path):
            try:
                os.lseek(self._handle, self._end, os.SEEK_SET)
                write_all(self._handle, data)
            except OSError:
                os.ftruncate(self._handle, self._end)
                raise
        self._end += len(data)
        self._rows.clear()

    def close(self) -> None:
        """Write the rest and close; a second call does nothing."""
        if self._handle >= 0:
            try:
                self.flush()
            finally:
                os.close(self._handle)
                self._handle = -1


def read_metrics(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """The columns of a file by name; a row that lacks a column has NaN there, or none where the column is text."""
    rows = [row for row, _ in _rows(Path(path))]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _line(step: int, row: Mapping[str, Any]) -> str:
    values = {"step": int(step), **{name: _plain(value) for name, value in row.items()}}
    return json.dumps(values, allow_nan=False, separators=(",", ":")) + "\n"


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _column(values: list[Any]) -> np.ndarray:
    infinite = {"Infinity", "-Infinity"}
    if any(isinstance(value, str) and value not in infinite for value in values):
        return np.array(values, object)
    if all(isinstance(value, int) for value in values):
        return np.array(values)
    return np.array([math.nan if value is None else float(value) for value in values])


def _rows(path: Path) -> list[tuple[dict[str, Any], int]]:
    """The whole rows of a file, each with the byte at which it ends."""
    with storage(path, "read"):
        lines = path.read_bytes().split(b"\n")[:-1]  # what follows the last line break is torn, or nothing
    ends = np.cumsum([len(line) + 1 for line in lines]).tolist()
    try:
        rows = json.loads(b"[" + b",".join(lines) + b"]")
        if len(rows) != len(lines) or not all(isinstance(row, dict) for row in rows):
            raise ValueError
    except (ValueError, RecursionError):
        rows = [_parse(path, number, line) for number, line in enumerate(lines, 1)]
    return list(zip(rows, ends, strict=True))


def _parse(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise StorageError(f"{path}, line {number}, is not a JSON object; correct the line or remove it.")
    return row


def _kept_bytes(path: Path, resumed_at: int) -> int:
    """Where the rows up to a step end; a row without a step stays with the rows before it."""
    end, step = 0, 0
    for row, row_end in _rows(path):
        found = row.get("step", step)
        step = found if isinstance(found, int) else step
        if step > resumed_at:
            break
        end = row_end
    return end
