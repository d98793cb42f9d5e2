"""Writing files so that a reader, after a kill or a power cut at any moment, meets the old content or the new one."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from arnpg.errors import StorageError

__all__ = ["fsync_folder", "remove_temporaries", "storage", "write_all", "write_atomic"]

REASONS = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the disk quota is used up; free some space",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.EACCES: "permission denied; choose another folder",
    errno.EPERM: "the operation is not permitted there; choose another folder",
    errno.ENAMETOOLONG: "the path is too long; choose a shorter one",
    errno.ELOOP: "its symbolic links form a loop; choose another folder",
    errno.ENOENT: "its parent folder does not exist; make it first, or mount the disk it is on",
    errno.ENOTDIR: "a part of the path is a file; choose another folder",
    errno.EEXIST: "a file of that name is in the way; choose another folder",
    errno.EISDIR: "it is a folder",
    errno.EFBIG: "the file would exceed the largest size allowed",
    errno.EIO: "the disk reports an input/output error",
    errno.ESTALE: "the network file system lost the folder",
}


@contextlib.contextmanager
def storage(path: str | os.PathLike, verb: str = "written") -> Iterator[None]:
    """Turn an operating system's error into a ``StorageError`` with the path, the reason and the cure."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        reason = REASONS.get(error.errno or 0, error.strerror or str(error))
        raise StorageError(f"{_shown(path)} cannot be {verb}: {reason}.") from error
    except ValueError as error:  # a NUL byte, or characters that the file system's encoding lacks
        raise StorageError(f"{_shown(path)} cannot be {verb}: the path is not valid, {error}.") from error


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


def _shown(path: str | os.PathLike) -> str:
    """The path for a message: printable, and its middle cut out where it fills the screen."""
    text = os.fspath(path).encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
    return text if len(text) <= 200 else f"{text[:90]}...{text[-90:]}"
