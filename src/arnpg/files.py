"""Read whatever this library wrote: a model or a solution."""

from __future__ import annotations

import os
import zipfile
import zlib

import numpy as np

from arnpg.archive import HEADER
from arnpg.solution import Solution
from arnpg.tabular.mdp import MDP
from arnpg.tabular.readers import damage_named, load_model

__all__ = ["load"]

MAX_HEADER = 64 * 2**20


def load(path: str | os.PathLike) -> MDP | Solution:
    """Read a model or a solution, whichever the file holds."""
    if _kind(path) != "solution":
        return load_model(path)
    with damage_named(path):
        return Solution.load(path)


def _kind(path: str | os.PathLike) -> str:
    """``solution`` where the header says so; anything else is for the model reader to judge."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(f"{HEADER}.npy").file_size > MAX_HEADER:
                return "model"
        with np.load(path, allow_pickle=False) as file:
            text = bytes(file[HEADER])
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError):
        return "model"
    return "solution" if b'"kind": "solution"' in text[:200] else "model"
