"""What the operating system says of files, as sentences: the path, the reason, the cure."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from arnpg.errors import StorageError

__all__ = ["check_target", "reason", "storage"]

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
    errno.EISDIR: "it is a folder; give the name of a file in it",
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
        raise StorageError(f"{_shown(path)} cannot be {verb}: {reason(error)}.") from error
    except ValueError as error:  # a NUL byte, or characters that the file system's encoding lacks
        raise StorageError(f"{_shown(path)} cannot be {verb}: the path is not valid, {error}.") from error


def check_target(path: str | os.PathLike, named: str | None = None) -> None:
    """Refuse a file that could not be written, before the work and not after it; ``named`` is what to call it."""
    target = Path(path)
    probe = target.with_name(f".{target.name}.{os.getpid()}.probe")
    with storage(named or path):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a directory")
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT, 0o666))
        probe.unlink()


def reason(error: OSError) -> str:
    """Why, and what to do about it."""
    return REASONS.get(error.errno or 0, error.strerror or str(error))


def _shown(path: str | os.PathLike) -> str:
    """The path for a message: printable, and its middle cut out where it fills the screen."""
    text = os.fspath(path).encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
    return text if len(text) <= 200 else f"{text[:90]}...{text[-90:]}"
