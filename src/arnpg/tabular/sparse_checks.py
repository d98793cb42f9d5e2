"""The checks of sparse transitions, and what a proof needs to know of any transitions: their row sums."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from scipy import sparse

from arnpg.errors import ModelError
from arnpg.tabular import memory
from arnpg.tabular.checks import ROUNDING, ROW_SUM_TOLERANCE, allowed, frozen

__all__ = ["canonical", "row_sums", "transitions"]


def transitions(given: Any, mask: Any, normalize: bool, notes: list[str]) -> tuple[sparse.csr_array, np.ndarray | None]:
    """``(S*A, S)`` in canonical form with rows that are distributions, and the actions that are allowed."""
    states, actions = _shape(given)
    usable = allowed(mask, (states, actions))
    if given.dtype.kind not in "biuf":
        raise ModelError(f"transitions must hold real numbers, got dtype {given.dtype}.")
    matrix = given if _usable_as_is(given) else _copied(given)
    _check_entries(matrix, actions)
    if matrix.data.min(initial=0.0) < 0:
        matrix = _clipped(matrix, notes)
    if usable is not None:
        matrix = _without_rows(matrix, ~usable.ravel())
    return _check_sums(matrix, actions, usable, normalize, notes), usable


def canonical(matrix: sparse.csr_array) -> sparse.csr_array:
    """Sorted successors, each once, no stored zeros, 32-bit indices wherever they suffice; changes its argument."""
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if max(matrix.nnz, *cast(tuple[int, int], matrix.shape)) < np.iinfo(np.int32).max:
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return matrix


def row_sums(kernel: np.ndarray | sparse.csr_array, mask: np.ndarray | None) -> tuple[float, float]:
    """The least (at most one) and the largest (at least one) sum of a row, with rounding allowed for."""
    if isinstance(kernel, np.ndarray):
        sums, terms = np.einsum("sat->sa", kernel).ravel(), kernel.shape[-1]
    else:
        sums, terms = _sums(kernel), int(np.diff(kernel.indptr).max(initial=1))
    if mask is not None:
        sums = sums[mask.ravel()]
    rounding = terms * 2.0**-53
    return min(1.0, float(sums.min())) - rounding, max(1.0, float(sums.max())) + rounding


def _sums(matrix: sparse.csr_array) -> np.ndarray:
    return np.asarray(matrix @ np.ones(cast(tuple[int, int], matrix.shape)[1]))


def _shape(given: Any) -> tuple[int, int]:
    rows, states = given.shape
    if rows == 0 or states == 0:
        raise ModelError(f"transitions must have shape (S*A, S), got {given.shape}; there must be at least one state.")
    if rows % states:
        raise ModelError(
            f"transitions must have shape (S*A, S), got {given.shape}; one matrix per action goes through "
            "MDP.from_sparse."
        )
    return states, rows // states


def _usable_as_is(given: Any) -> bool:
    """Whether the matrix is canonical and nobody can write to it, so that a memory map may stay one."""
    if not (isinstance(given, sparse.csr_array) and given.dtype == np.float64):
        return False
    parts = (given.data, given.indices, given.indptr)
    return all(frozen(part) for part in parts) and given.has_canonical_format and bool((given.data != 0).all())


def _copied(given: Any) -> sparse.csr_array:
    memory.require(
        20 * given.nnz, f"a copy of transitions with {given.nnz} entries", "close other programs or use a larger one"
    )
    return canonical(sparse.csr_array(given, dtype=np.float64, copy=True))


def _place(matrix: sparse.csr_array, entry: int, actions: int) -> str:
    """``state, action, successor`` of a stored entry."""
    row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
    return f"{row // actions}, {row % actions}, {int(matrix.indices[entry])}"


def _check_entries(matrix: sparse.csr_array, actions: int) -> None:
    """Finite, and not negative beyond rounding."""
    data = matrix.data
    if not math.isfinite(float(data.sum())):
        bad = np.flatnonzero(~np.isfinite(data))
        if len(bad):
            place = _place(matrix, int(bad[0]), actions)
            raise ModelError(f"transitions[{place}] must be finite, got {data[bad[0]]} ({len(bad)} such entries).")
    if data.min(initial=0.0) < -ROUNDING:
        worst = int(data.argmin())
        place = _place(matrix, worst, actions)
        raise ModelError(f"transitions[{place}] must be >= 0, got {data[worst]:g}; probabilities are not negative.")


def _clipped(matrix: sparse.csr_array, notes: list[str]) -> sparse.csr_array:
    negative = matrix.data < 0
    notes.append(f"{int(negative.sum())} entries of transitions were negative by rounding and set to zero")
    copy = matrix.copy()
    copy.data[negative] = 0.0
    return canonical(copy)


def _without_rows(matrix: sparse.csr_array, rows: np.ndarray) -> sparse.csr_array:
    """The matrix with some rows emptied."""
    lengths = np.diff(matrix.indptr)
    if not lengths[rows].any():
        return matrix
    copy = matrix.copy()
    copy.data[np.repeat(rows, lengths)] = 0.0
    return canonical(copy)


def _check_sums(
    matrix: sparse.csr_array, actions: int, usable: np.ndarray | None, normalize: bool, notes: list[str]
) -> sparse.csr_array:
    sums = _sums(matrix)
    off = np.abs(sums - 1) > ROW_SUM_TOLERANCE
    if usable is not None:
        off &= usable.ravel()
    count = int(off.sum())
    if not count:
        return matrix
    if not normalize or (sums[off] <= 0).any():
        row = int(np.flatnonzero(off & (sums <= 0) if normalize else off)[0])
        cure = (
            "make it absorbing with a successor s of probability 1, or leave the action out of allowed"
            if sums[row] == 0
            else "normalise the row or pass normalize=True"
        )
        where = f"transitions[{row // actions}, {row % actions}]"
        raise ModelError(f"{where} must sum to 1, got {sums[row]:.6f} ({count} such rows); {cure}.")
    notes.append(f"{count} rows of transitions were normalised, as asked")
    copy = matrix.copy()
    copy.data /= np.repeat(np.where(sums > 0, sums, 1.0), np.diff(copy.indptr))
    return copy
