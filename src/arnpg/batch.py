"""Batches of trees: leaves that differ along a new first axis, and functions of the single trees on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from arnpg.errors import SettingsError

__all__ = ["on_threads", "stack", "take"]


def stack(trees: Sequence[Any]) -> tuple[Any, Any]:
    """Stack the leaves that differ along a new first axis; returns the tree and its ``vmap`` axes."""
    leaves, structures = zip(*(jax.tree.flatten(tree) for tree in trees), strict=True)
    if any(structure != structures[0] for structure in structures):
        raise SettingsError("algorithms of a batch must be of one kind, got different structures; run them apart.")
    stacked, axes = [], []
    for group in zip(*leaves, strict=True):
        same = all(leaf is group[0] or np.array_equal(leaf, group[0]) for leaf in group[1:])
        if not same and not all(isinstance(leaf, jax.Array | np.ndarray | np.generic) for leaf in group):
            raise SettingsError(f"algorithms of a batch may differ in numbers only, got {group[0]} and {group[1]}.")
        if not same and any(np.shape(leaf) != np.shape(group[0]) for leaf in group):
            raise SettingsError(f"algorithms of a batch must have equal shapes, got {[np.shape(g) for g in group]}.")
        stacked.append(group[0] if same else np.stack([np.asarray(leaf) for leaf in group]))
        axes.append(None if same else 0)
    return jax.tree.unflatten(structures[0], stacked), jax.tree.unflatten(structures[0], axes)


def take(tree: Any, axes: Any, index: int) -> Any:
    """The tree of this number out of what ``stack`` returned."""
    leaves, structure = jax.tree.flatten(tree)
    wanted = structure.flatten_up_to(axes)
    return structure.unflatten(
        [leaf if axis is None else leaf[index] for leaf, axis in zip(leaves, wanted, strict=True)]
    )


def on_threads(function: Callable[[int], Any], count: int) -> Any:
    """``function(0), ..., function(count - 1)``, stacked; compiled code runs on as many threads as there are cores.

    Each thread works in the precision of the one that calls, which is a thread's own affair in JAX.
    """
    wide = jnp.result_type(float) == jnp.float64

    def one(index: int) -> Any:
        with jax.enable_x64(wide):
            return function(index)

    with ThreadPoolExecutor(_cores()) as pool:
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *pool.map(one, range(count)))


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
