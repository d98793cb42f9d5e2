"""Arrays and a few words about them in one ``.npz`` file: no pickle, checked before anything is allocated.

Large files are not compressed: their arrays are mapped from the disk, and take memory only where they are read.
Written to a temporary file beside the target, flushed to the disk, then renamed, so that a reader never meets half a
file.
"""

from __future__ import annotations

import contextlib
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from arnpg.errors import ModelError, StorageError
from arnpg.mapped import map_stored, write_aligned
from arnpg.storage import storage

__all__ = ["read_archive", "write_archive"]

HEADER = "header"
MAX_BYTES = 64 * 2**30
LARGE = 2**24  # bytes from which arrays are stored as they are, so that a reader may map them instead of copying


def write_archive(
    path: str | os.PathLike, kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """Write ``arrays`` with ``header`` (plain JSON data) as a file of this ``kind``, all or nothing."""
    target = Path(path)
    text = json.dumps({"kind": kind, "version": 1, **header}, allow_nan=True)
    named: dict[str, Any] = {HEADER: np.frombuffer(text.encode(), np.uint8), **arrays}
    large = sum(array.nbytes for array in named.values()) >= LARGE
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    with storage(target):
        try:
            with temporary.open("wb") as file:
                if large:
                    write_aligned(file, named)
                else:
                    np.savez_compressed(file, **named)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def read_archive(path: str | os.PathLike, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a file of this ``kind``."""
    with _refused(path, kind):
        _check_sizes(path)
        with np.load(path, allow_pickle=False) as file:
            mapped = map_stored(path) if os.path.getsize(path) >= LARGE else {}
            arrays = {name: mapped[name] if name in mapped else file[name] for name in file.files}
        header = json.loads(bytes(arrays.pop(HEADER)).decode()) if HEADER in arrays else {}
    found = header.get("kind", kind)
    if found != kind:
        raise ModelError(f"{path} holds a {found}, not a {kind}.")
    if header.get("version", 1) > 1:
        raise ModelError(f"{path} has format version {header['version']}; this version reads 1, update arnpg.")
    return header, arrays


@contextlib.contextmanager
def _refused(path: str | os.PathLike, kind: str) -> Iterator[None]:
    """Turn the many ways in which a file can be wrong into one sentence."""
    try:
        yield
    except FileNotFoundError as error:
        raise ModelError(f"{path} does not exist; give the path of a {kind} file (.npz).") from error
    except IsADirectoryError as error:
        raise ModelError(f"{path} is a folder; give the path of a {kind} file (.npz).") from error
    except ValueError as error:
        why = "it holds Python objects, which are never loaded" if "allow_pickle" in str(error) else str(error)
        raise ModelError(f"{path} cannot be read as a {kind} file: {why}.") from error
    except PermissionError as error:
        raise StorageError(f"{path} may not be read: {error.strerror}; change its permissions.") from error
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, KeyError, AttributeError, NotImplementedError) as error:
        raise ModelError(
            f"{path} is not a {kind} file written by arnpg or numpy.savez, or it is damaged: {error}."
        ) from error


def _check_sizes(path: str | os.PathLike) -> None:
    """Refuse what claims more than ``MAX_BYTES``, by the directory of the archive and by each array's own header."""
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if entry.file_size > MAX_BYTES:
                raise ValueError(f"{entry.filename} claims {entry.file_size} bytes")
            with archive.open(entry) as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(file)
                if np.prod([float(n) for n in shape]) * dtype.itemsize > MAX_BYTES:
                    raise ValueError(f"{entry.filename} claims shape {shape}")
