"""``fault.npz`` in a run's folder: the environment's fault that stopped it, so that it can be played again."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from arnpg.errors import EnvironmentFault, StorageError
from arnpg.runs.files import storage, write_atomic

__all__ = ["read_fault", "write_fault"]

NAME = "fault.npz"


def write_fault(folder: Path, fault: EnvironmentFault) -> Path:
    """Write the fault's ``details``, and its message; what is no array of numbers or text is left out."""
    arrays = {name: np.asarray(value) for name, value in {**fault.details, "message": str(fault)}.items()}
    plain: dict[str, Any] = {name: array for name, array in arrays.items() if array.dtype != object}
    buffer = io.BytesIO()
    np.savez(buffer, **plain)
    write_atomic(folder / NAME, buffer.getvalue())
    return folder / NAME


def read_fault(path: Path) -> dict[str, np.ndarray]:
    """What ``write_fault`` wrote."""
    with storage(path, "read"):
        data = path.read_bytes()
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise StorageError(f"{path} is not a fault that was recorded: {error}") from error
