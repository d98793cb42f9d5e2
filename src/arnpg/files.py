"""Read whatever this library wrote: a model, a solution, a trained run."""

from __future__ import annotations

import os
import zipfile
import zlib
from typing import TYPE_CHECKING

import numpy as np

from arnpg.archive import HEADER
from arnpg.solution import Solution
from arnpg.tabular.mdp import MDP
from arnpg.tabular.readers import damage_named, load_model

if TYPE_CHECKING:
    from arnpg.trained import TrainedRun

__all__ = ["load"]

MAX_HEADER = 64 * 2**20


def load(path: str | os.PathLike) -> MDP | Solution | TrainedRun:
    """Read a model, a solution or a trained run, whichever the file holds."""
    kind = _kind(path)
    if kind == "model":
        return load_model(path)
    from arnpg.trained import KIND, TrainedRun

    with damage_named(path):
        return TrainedRun.load(path) if kind == KIND else Solution.load(path)


def _kind(path: str | os.PathLike) -> str:
    """What the header says; anything unknown is for the model reader to judge."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(f"{HEADER}.npy").file_size > MAX_HEADER:
                return "model"
        with np.load(path, allow_pickle=False) as file:
            text = bytes(file[HEADER])
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError):
        return "model"
    return next((kind for kind in ("solution", "trained run") if f'"kind": "{kind}"'.encode() in text[:200]), "model")
