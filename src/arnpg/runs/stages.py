"""Stages of a computation that are kept in a run folder: what is there is read, what is not is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from arnpg.errors import StorageError
from arnpg.runs.checkpoint import read_arrays, write_arrays
from arnpg.runs.folder import RunFolder
from arnpg.runs.progress import Reporter, SilentReporter

__all__ = ["FolderStages"]

Arrays = Mapping[str, np.ndarray]


class FolderStages:
    """Arrays by stage, as ``stages/NAME.npz`` with a checksum; a damaged one is reported and computed again."""

    def __init__(self, folder: RunFolder, reporter: Reporter | None = None) -> None:
        """``folder`` is locked by the caller."""
        self._folder, self._reporter = folder, reporter or SilentReporter()

    def stage(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """The arrays of a stage: as kept, or computed and kept now."""
        path = self._folder.path / "stages" / f"{name}.npz"
        if path.exists():
            try:
                return read_arrays(path, self._folder.config_hash)
            except StorageError as error:
                self._reporter.say(f"{error} The stage {name} is computed again.")
        arrays = {key: np.asarray(array) for key, array in compute().items()}
        write_arrays(path, self._folder.config_hash, arrays)
        return arrays
