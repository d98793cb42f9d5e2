"""Every check of a model at construction: what is wrong, where, what was found, and the cure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from arnpg.errors import ModelError
from arnpg.tabular import memory

__all__ = ["allowed", "clip_rounding", "discount", "frozen", "initial", "names", "numbers", "rewards", "transitions"]

ROW_SUM_TOLERANCE = 1e-8
ROUNDING = 1e-12
SPARSE_CURE = "give transitions as a sparse matrix (MDP.from_sparse) or by successors (MDP.from_slots)"


def numbers(argument: str, given: Any) -> np.ndarray:
    """A float64 array of finite numbers: a fresh copy, unless nobody can write to what is given (a memory map)."""
    try:
        array = np.asarray(given)
    except (ValueError, TypeError) as error:
        raise ModelError(f"{argument} must be a rectangular array of numbers: {error}.") from error
    if array.dtype.kind not in "biuf":
        raise ModelError(
            f"{argument} must hold real numbers, got dtype {array.dtype}; ragged lists and objects are not arrays."
        )
    if not (frozen(array) and array.dtype == np.float64 and array.flags.c_contiguous):
        memory.require(8 * array.size, f"{argument} of shape {array.shape}", SPARSE_CURE)
        array = np.array(array, dtype=np.float64, order="C")
    total = array.sum()
    if not math.isfinite(total):
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            place = ", ".join(map(str, bad[0].tolist()))
            raise ModelError(
                f"{argument}[{place}] must be finite, got {array[tuple(bad[0])]} ({len(bad)} such entries)."
            )
    return array


def frozen(array: np.ndarray) -> bool:
    """Whether neither the array nor any array it is a view of can be written to."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return True


def allowed(given: Any, shape: tuple[int, int]) -> np.ndarray | None:
    """``(S, A)`` booleans with at least one action in each state; none where every action is allowed."""
    if given is None:
        return None
    mask = np.asarray(given)
    if mask.dtype != np.bool_ or mask.shape != shape:
        raise ModelError(f"allowed must be booleans of shape (S, A) = {shape}, got {mask.dtype} of shape {mask.shape}.")
    empty = np.flatnonzero(~mask.any(axis=1))
    if len(empty):
        raise ModelError(
            f"allowed[{empty[0]}] must allow at least one action, got none ({len(empty)} such states); "
            "a state without a choice still has one action, such as waiting."
        )
    return None if mask.all() else mask.copy()


def transitions(given: Any, mask: Any, normalize: bool, notes: list[str]) -> tuple[np.ndarray, np.ndarray | None]:
    """``(S, A, S)`` with rows that are distributions, and the actions that are allowed; other actions' rows are 0."""
    kernel = numbers("transitions", given)
    _transition_shape(kernel.shape)
    usable = allowed(mask, kernel.shape[:2])
    if usable is not None:
        kernel = np.where(usable[:, :, None], kernel, 0.0)
    kernel = clip_rounding("transitions", kernel, notes)
    sums = kernel.sum(axis=2)
    off = np.abs(sums - 1) > ROW_SUM_TOLERANCE
    if usable is not None:
        off &= usable
    if off.any() and not (normalize and (sums > 0).all()):
        state, action = np.argwhere(off)[0]
        total = sums[state, action]
        cure = (
            "make it absorbing with transitions[s, a, s] = 1, or leave the action out of allowed"
            if total == 0
            else "normalise the row or pass normalize=True"
        )
        raise ModelError(
            f"transitions[{state}, {action}] must sum to 1, got {total:.6f} ({int(off.sum())} such rows); {cure}."
        )
    if off.any():
        kernel = kernel / np.where(sums > 0, sums, 1.0)[:, :, None]
        notes.append(f"{int(off.sum())} rows of transitions were normalised, as asked")
    return kernel, usable


def _transition_shape(shape: tuple[int, ...]) -> None:
    if len(shape) == 3 and shape[0] == shape[2] and min(shape) > 0:
        return
    hint = ""
    if len(shape) == 3 and min(shape) == 0:
        hint = "; there must be at least one state and one action"
    elif len(shape) == 3 and shape[1] == shape[2]:
        hint = "; one matrix per action goes through MDP.from_action_matrices"
    elif len(shape) == 2:
        hint = "; reshape rows of (S*A, S) with .reshape(S, A, S)"
    raise ModelError(f"transitions must have shape (S, A, S), got {shape}{hint}.")


def clip_rounding(argument: str, array: np.ndarray, notes: list[str]) -> np.ndarray:
    """Entries such as -1e-17 from a floating subtraction become zero; real negatives are refused."""
    if array.min(initial=0.0) >= 0:
        return array
    negative = array < 0
    if array.min() < -ROUNDING:
        worst = np.unravel_index(array.argmin(), array.shape)
        place = ", ".join(str(int(i)) for i in worst)
        raise ModelError(f"{argument}[{place}] must be >= 0, got {array[worst]:g}; probabilities are not negative.")
    notes.append(f"{int(negative.sum())} entries of {argument} were negative by rounding and set to zero")
    return np.where(negative, 0.0, array)


def rewards(
    given: Any, labels: Sequence[str] | None, mask: np.ndarray | None, shape: tuple[int, int], notes: list[str]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """``(m, S, A)`` and the objectives' names; 0 where an action is not allowed."""
    if isinstance(given, Mapping):
        if labels is not None:
            raise ModelError("names must be left out where rewards is a mapping; its keys are the names.")
        labels = tuple(given)
        tables = [_reward_table(f"rewards[{name!r}]", given[name], shape) for name in labels]
        table = np.stack(tables) if tables else np.zeros((0, *shape))
    else:
        table = numbers("rewards", given)
        if table.ndim != 3 or table.shape[1:] != shape:
            hint = "; move the last axis to the front" if table.shape[:2] == shape and table.ndim == 3 else ""
            hint = '; give one table a name: {"reward": table}' if table.shape == shape else hint
            raise ModelError(
                f"rewards must have shape (m, S, A) = (m, {shape[0]}, {shape[1]}), got {table.shape}{hint}."
            )
        labels = tuple(labels) if labels is not None else tuple(f"objective {i + 1}" for i in range(len(table)))
    if len(table) == 0:
        raise ModelError("rewards must hold at least one objective, got none.")
    if len(labels) != len(table):
        raise ModelError(f"names must name each of the {len(table)} rewards, got {len(labels)} names.")
    if mask is not None and table[:, ~mask].any():
        table = np.where(mask, table, 0.0)
    _reward_ranges(table, notes)
    return table, names(labels)


def _reward_table(argument: str, given: Any, shape: tuple[int, int]) -> np.ndarray:
    table = numbers(argument, given)
    if table.shape != shape:
        hint = "; transpose it" if table.shape == shape[::-1] else ""
        raise ModelError(f"{argument} must have shape (S, A) = {shape}, got {table.shape}{hint}.")
    return table


def _reward_ranges(table: np.ndarray, notes: list[str]) -> None:
    if table.min() < 0 or table.max() > 1:
        notes.append("rewards lie outside [0, 1]: the rates of the paper hold for the rescaled problem")
    sizes = np.abs(table).max(axis=(1, 2))
    used = sizes[sizes > 0]
    if len(used) and used.max() / used.min() > 1e8:
        notes.append(
            f"rewards differ in size by a factor of {used.max() / used.min():.0e}: the problem is ill-conditioned"
        )


def names(labels: Sequence[str]) -> tuple[str, ...]:
    """Names that are text, not blank, and different."""
    for index, label in enumerate(labels):
        if not isinstance(label, str) or not label.strip():
            raise ModelError(f"names[{index}] must be a name, got {label!r}; give each objective a name.")
        if label in labels[:index]:
            raise ModelError(f"names[{index}] repeats {label!r}; give each objective a name of its own.")
    return tuple(labels)


def initial(given: Any, states: int, normalize: bool) -> np.ndarray:
    """``rho``, uniform where nothing is given."""
    if given is None:
        return np.full(states, 1 / states)
    start = numbers("initial", given)
    if start.shape != (states,):
        raise ModelError(f"initial must have shape (S,) = ({states},), got {start.shape}.")
    start = clip_rounding("initial", start, [])
    total = start.sum()
    if abs(total - 1) > ROW_SUM_TOLERANCE and not (normalize and total > 0):
        raise ModelError(f"initial must sum to 1, got {total:.6f}; normalise it or pass normalize=True.")
    return start / total


def discount(given: Any, notes: list[str]) -> float:
    """``gamma`` in ``[0, 1)``."""
    try:
        value = float(given)
    except (TypeError, ValueError) as error:
        raise ModelError(f"discount must be a number in [0, 1), got {given!r}.") from error
    if value == 1:
        raise ModelError("discount must be below 1, got 1; average-reward problems are out of scope, try 0.999.")
    if not 0 <= value < 1:
        raise ModelError(f"discount must be in [0, 1), got {value}.")
    if value > 0.9999:
        notes.append(f"discount {value:g} makes the model ill-conditioned; read the certified gap")
    return value
