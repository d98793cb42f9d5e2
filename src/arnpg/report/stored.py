"""A report as a file: JSON that strict readers take, with NaN as ``null`` and the infinities as text."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from arnpg.errors import StorageError
from arnpg.report.figure import Report

__all__ = ["encode_report", "read_report"]

MAX_BYTES = 256 * 2**20
NUMBERS = ("x", "y", "low", "high")


def encode_report(report: Report) -> bytes:
    """The bytes of ``report.json``; equal reports have equal bytes."""
    return (json.dumps(_plain(report.to_json()), indent=1, allow_nan=False) + "\n").encode()


def read_report(path: str | os.PathLike) -> Report:
    """What ``encode_report`` gave."""
    file = Path(path)
    try:
        if file.stat().st_size > MAX_BYTES:
            raise StorageError(f"{file} is too large for a report, {file.stat().st_size} bytes.")
        data = json.loads(file.read_bytes())
        for figure in data["figures"]:
            for panel in figure["panels"]:
                for series in panel["series"]:
                    series |= {name: [_number(value) for value in series[name]] for name in NUMBERS}
        return Report.from_json(data)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{file} cannot be read: {error.strerror or error}.") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StorageError(f"{file} is not a report of arnpg: {error!r}; run the experiment again.") from error


def _plain(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _plain(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_plain(value) for value in tree]
    if isinstance(tree, float) and not math.isfinite(tree):
        return None if math.isnan(tree) else str(tree)
    return tree


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
