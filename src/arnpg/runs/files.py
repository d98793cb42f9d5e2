"""Writing files so that a reader, after a kill or a power cut at any moment, meets the old content or the new one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from arnpg.storage import storage

__all__ = ["fsync_folder", "remove_temporaries", "storage", "write_all", "write_atomic"]

def write_atomic(path: Path, data: bytes | memoryview) -> None:
    """Replace ``path`` by ``data``: temporary file, fsync, rename, fsync of the folder."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with storage(path):
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            try:
                write_all(handle, data)
                os.fsync(handle)
            finally:
                os.close(handle)
            os.replace(temporary, path)  # noqa: PTH105 (named so that tests can slow it down)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        fsync_folder(path.parent)


def write_all(handle: int, data: bytes | memoryview) -> None:
    """Write every byte; the operating system may take them in portions."""
    rest = memoryview(data)
    while len(rest):
        rest = rest[os.write(handle, rest) :]


def fsync_folder(folder: Path) -> None:
    """Make a rename in ``folder`` durable, where folders can be synchronised."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems refuse; the rename is atomic all the same
            os.fsync(handle)
    finally:
        os.close(handle)


def remove_temporaries(folder: Path) -> None:
    """Remove what a killed writer left behind; the caller holds the lock of the run."""
    with storage(folder):
        for path in folder.glob(".*.tmp"):
            path.unlink(missing_ok=True)
