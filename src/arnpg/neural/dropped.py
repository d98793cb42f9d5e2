"""Rows of a batch that are no steps: an environment of the host broke there, and its episode was dropped.

Such a row has the observation that was acted upon, rewards 0 and the mark ``truncated``. Nothing is learnt from it:

* the episode is cut before it, where the critic stands for what was not seen, as at any truncation;
* in its place another row of the batch, drawn at random, teaches policy and critics a second time, so that a batch
  keeps its size and a compiled program serves all of them;
* a path counts in a value only if the rows that make up its value were all played.

A batch of environments that cannot lose an episode has no marks, and none of this is in its program.
"""

from __future__ import annotations

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from .rollout import Batch
from .values import AbstractValue, EpisodeTotal, PathTotal, episode_lengths, first_episode, path_totals

__all__ = ["counted", "cut_before", "mean_length", "mean_of_rows", "replaced", "value_means"]

Values = AbstractValue | tuple[AbstractValue, ...]
Tree = TypeVar("Tree")


def cut_before(batch: Batch) -> Batch:
    """The same batch with lost episodes truncated at their last real step; the dropped row itself leads nowhere."""
    if batch.dropped is None:
        return batch
    follows = jnp.roll(batch.dropped, -1, axis=0).at[-1].set(False)
    truncated = (batch.truncated | (follows & ~batch.over)) & ~batch.dropped
    marks = (batch.terminated | batch.dropped, truncated)
    return eqx.tree_at(lambda b: (b.terminated, b.truncated), batch, marks)


def replaced(batch: Batch, key: PRNGKeyArray, arrays: Tree) -> Tree:
    """Arrays ``(t, b, ...)`` with each dropped row replaced by one that was played, the same for all of them."""
    if batch.dropped is None:
        return arrays
    dropped = batch.dropped.reshape(-1)
    played = jnp.argsort(dropped, stable=True)  # those that were played come first
    drawn = jax.random.randint(key, dropped.shape, 0, jnp.maximum((~dropped).sum(), 1))
    rows = jnp.where(dropped, played[drawn], jnp.arange(dropped.size))

    def chosen(array: Array) -> Array:
        return array.reshape(-1, *array.shape[2:])[rows].reshape(array.shape)

    return jax.tree.map(chosen, arrays)


def counted(value: AbstractValue, batch: Batch) -> Bool[Array, " b"]:
    """Whether every row that makes up the value of a path was played."""
    if batch.dropped is None:
        return jnp.ones(batch.terminated.shape[1], bool)
    if isinstance(value, PathTotal):
        return ~batch.dropped.any(axis=0)
    return ~(batch.dropped & (first_episode(batch) > 0)).any(axis=0)


def value_means(
    values: Values, bootstrap: Float[Array, "t b m"], batch: Batch, discount: float
) -> Float[Array, " m"]:
    """``V_1..m``: the means of ``path_totals`` over the paths that count."""
    totals = path_totals(values, bootstrap, batch, discount)
    if batch.dropped is None:
        return totals.mean(0)
    parts = values if isinstance(values, tuple) else (values,) * totals.shape[1]
    return jnp.average(totals, axis=0, weights=jnp.stack([counted(part, batch) for part in parts], axis=1))


def mean_length(batch: Batch) -> Float[Array, ""]:
    """Mean steps of the first episodes that were not lost."""
    lengths = episode_lengths(batch)
    return lengths.mean() if batch.dropped is None else jnp.average(lengths, weights=counted(EpisodeTotal(), batch))


def mean_of_rows(batch: Batch, numbers: Float[Array, "t b"]) -> Float[Array, ""]:
    """Over the rows that were played."""
    return numbers.mean() if batch.dropped is None else jnp.mean(numbers, where=~batch.dropped)
