"""Shuffled parts of a batch, for passes of Adam."""

from __future__ import annotations

import jax
from jaxtyping import Array, Int, PRNGKeyArray

__all__ = ["minibatches"]


def minibatches(key: PRNGKeyArray, count: int, size: int) -> Int[Array, "n k"]:
    """Row numbers of each minibatch of one pass; what does not fill a minibatch is left out."""
    size = min(size, count)
    return jax.random.permutation(key, count)[: count // size * size].reshape(-1, size)
