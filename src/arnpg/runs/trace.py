"""The trace of a run on the disk: a binary record a macro step, appended, so that a save costs its new rows only.

A checkpoint states how many records it stands on and the SHA-256 of them all. What a killed process appended after its
last checkpoint is cut off on resume, and an older checkpoint finds its own, shorter trace in the same file.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np

from arnpg.errors import StorageError
from arnpg.runs.checkpoint import named_leaves
from arnpg.runs.files import storage, write_all

__all__ = ["TraceFile"]

BLOCK = 2**20


class TraceFile:
    """Rows of a pytree of arrays, appended in steps; ``axis`` is where the arrays in memory have their steps."""

    def __init__(self, path: Path, template: Any, axis: int) -> None:
        """Nothing is read or written yet; ``template`` is one row, as arrays or their shapes."""
        self.path, self._axis = path, axis
        self._structure = jax.tree.structure(template)
        leaves = named_leaves(template)
        self._record = np.dtype([(name, np.dtype(leaf.dtype), leaf.shape) for name, leaf in leaves.items()])
        self._digest, self._bytes = hashlib.sha256(), 0

    def mark(self) -> dict[str, Any]:
        """What a checkpoint writes down to find this state again."""
        return {"bytes": self._bytes, "sha256": self._digest.hexdigest()}

    def resume(self, mark: dict[str, Any]) -> None:
        """Check the records up to ``mark`` and cut off what follows them."""
        self._check(mark)
        with storage(self.path), self.path.open("r+b") as file:
            file.truncate(mark["bytes"])

    def begin(self) -> None:
        """Start empty, whatever an attempt without a checkpoint left behind."""
        with storage(self.path):
            self.path.write_bytes(b"")

    def append(self, rows: Any) -> None:
        """Append the rows of a chunk and synchronise; after a failure the file is as it was."""
        data = self._encode(rows)
        with storage(self.path):
            handle = os.open(self.path, os.O_WRONLY)
            try:
                os.lseek(handle, self._bytes, os.SEEK_SET)
                write_all(handle, data)
                os.fsync(handle)
            except OSError:
                os.ftruncate(handle, self._bytes)
                raise
            finally:
                os.close(handle)
        self._digest.update(data)
        self._bytes += len(data)

    def read(self, mark: dict[str, Any]) -> Any:
        """Every row up to ``mark``, as the pytree of arrays that one uninterrupted run would have made."""
        self._check(mark)
        with storage(self.path, "read"):
            records = np.fromfile(self.path, self._record, mark["bytes"] // self._record.itemsize)
        leaves = [np.moveaxis(records[name], 0, self._axis).copy(order="C") for name in self._record.names or ()]
        return jax.tree.unflatten(self._structure, leaves)

    def _encode(self, rows: Any) -> bytes:
        leaves = [np.moveaxis(np.asarray(leaf), self._axis, 0) for leaf in jax.tree.leaves(rows)]
        records = np.empty(len(leaves[0]), self._record)
        for name, leaf in zip(self._record.names or (), leaves, strict=True):
            records[name] = leaf
        return records.tobytes()

    def _check(self, mark: dict[str, Any]) -> None:
        digest, left = hashlib.sha256(), mark["bytes"]
        with storage(self.path, "read"), self.path.open("rb") as file:
            while left and (block := file.read(min(BLOCK, left))):
                digest.update(block)
                left -= len(block)
        if left:
            raise StorageError(f"{self.path} is truncated: {left} bytes are missing of the trace up to the checkpoint.")
        if digest.hexdigest() != mark["sha256"]:
            raise StorageError(f"{self.path} is damaged: the SHA-256 of the trace up to the checkpoint differs.")
        self._digest, self._bytes = digest, mark["bytes"]
