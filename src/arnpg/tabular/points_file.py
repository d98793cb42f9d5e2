"""The points that a solve has seen, in a file: a long solve that was cut off goes on from there.

Kept are deterministic policies, one small number a state. Whoever reads them evaluates each again, so that a file can
cost time, never truth; a file of another criterion on the same model is as welcome, as every point of the achievable
region is a column for every master.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from arnpg.archive import read_archive, write_archive
from arnpg.errors import ModelError, SettingsError, StorageError
from arnpg.tabular.column_generation import Columns
from arnpg.tabular.kernel import AbstractKernel

__all__ = ["PointsFile"]

KIND = "checkpoint"
SHARE = 20  # the file is written again after so many times what the last writing took
LEAST_SECONDS = 5.0


class PointsFile:
    """The file of one solve; where there is no path, nothing is read or written."""

    def __init__(self, path: str | os.PathLike | None, kernel: AbstractKernel) -> None:
        """Nothing is read or written yet; a folder that is not there is told now, and not after an hour."""
        if path is not None and not isinstance(path, str | os.PathLike):
            raise SettingsError(f"checkpoint must be a path, got {path!r}.")
        self._path = None if path is None else Path(path)
        if self._path is not None and not (self._path.parent.is_dir() and os.access(self._path.parent, os.W_OK)):
            raise StorageError(f"checkpoint {path}: its folder does not exist or cannot be written to; make it first.")
        self._mdp = kernel.mdp
        self._kernel = kernel
        self._next = time.monotonic() + LEAST_SECONDS

    def restore(self, columns: Columns) -> int:
        """Add the points of the file, evaluated again; how many were new."""
        if self._path is None or not self._path.exists():
            return 0
        _, arrays = read_archive(self._path, KIND)
        policies = self._checked(arrays.get("policies"))
        return sum(columns.add(self._kernel.evaluate(policy.astype(np.int32))) for policy in policies)

    def note(self, columns: Columns) -> None:
        """Write, unless that was done a moment ago."""
        if self._path is not None and time.monotonic() >= self._next:
            self.write(columns)

    def write(self, columns: Columns) -> None:
        """Write, all or nothing; the file before stays until the new one is whole."""
        policies = [point.policy for point in columns.points if point.policy.ndim == 1]
        if self._path is None or not policies:
            return
        began = time.monotonic()
        kind = np.min_scalar_type(self._mdp.actions - 1)
        sizes = {"states": self._mdp.states, "actions": self._mdp.actions}
        write_archive(self._path, KIND, sizes, {"policies": np.stack(policies).astype(kind)})
        ended = time.monotonic()
        self._next = ended + max(LEAST_SECONDS, SHARE * (ended - began))

    def _checked(self, policies: np.ndarray | None) -> np.ndarray:
        """Refuse what are no policies of this model."""
        mdp = self._mdp
        if policies is None or policies.ndim != 2 or policies.dtype.kind != "u":
            raise ModelError(f"{self._path} holds no policies; give the path of a file that solve may write.")
        if policies.shape[1] != mdp.states or (policies >= mdp.actions).any():
            raise ModelError(
                f"{self._path} belongs to another model, with {policies.shape[1]} states and not {mdp.states}, or more "
                f"actions than {mdp.actions}; give another path."
            )
        allowed = mdp.allowed
        if allowed is not None and not all(allowed[np.arange(mdp.states), policy].all() for policy in policies):
            raise ModelError(f"{self._path} belongs to another model: it takes actions that are not allowed here.")
        return policies
