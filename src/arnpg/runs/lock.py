"""One process a folder: an advisory lock that ends with its process, and the pid for whoever comes second."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
from pathlib import Path

from arnpg.errors import StorageError
from arnpg.runs.files import storage, write_all

try:
    import fcntl
except ImportError:  # Windows: the pid in the file decides
    fcntl = None

__all__ = ["FolderLock"]

UNSUPPORTED = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}


class FolderLock:
    """``flock`` on a file that also names its owner; where the file system has no locks, the owner's pid decides."""

    def __init__(self, path: Path) -> None:
        """Nothing is locked yet."""
        self.path = path
        self._handle: int | None = None

    def acquire(self) -> None:
        """Take the lock, also over a dead owner, or say which process holds it."""
        with storage(self.path):
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not self._free(handle):
                raise StorageError(self._occupied(handle))
            with storage(self.path):
                os.ftruncate(handle, 0)
                os.lseek(handle, 0, os.SEEK_SET)
                write_all(handle, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle

    def release(self) -> None:
        """Free the folder; the empty file stays, since removing it would race with the next owner."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(handle, 0)
            os.close(handle)

    def _free(self, handle: int) -> bool:
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise
        owner = _owner(handle)
        return not owner or (owner["host"] == socket.gethostname() and not _alive(owner["pid"]))

    def _occupied(self, handle: int) -> str:
        owner = _owner(handle)
        cure = "wait until it ends or stop it first"
        if owner is None:
            return f"{self.path.parent} is in use by another process; {cure}."
        where = f"{self.path.parent} is in use by process {owner['pid']}"
        if owner["host"] == socket.gethostname():
            return f"{where}; {cure}."
        return f"{where} on {owner['host']}; {cure} (if it is gone, remove {self.path})."


def _owner(handle: int) -> dict | None:
    """Who the file says holds it; none where it is empty or torn."""
    try:
        found = json.loads(os.pread(handle, 4096, 0) if hasattr(os, "pread") else os.read(handle, 4096))
        return {"pid": int(found["pid"]), "host": str(found["host"])}
    except (ValueError, TypeError, KeyError, OSError):
        return None


def _alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
