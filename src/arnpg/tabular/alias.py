"""Walker's alias method: one uniform number, one comparison and two look-ups a draw, however many outcomes there are.

Of ``n`` equal columns each holds at most two outcomes, its own with probability ``keep`` and its ``alias`` above that:

    p_k = ( keep_k + sum_{j : alias_j = k} (1 - keep_j) ) / n.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from arnpg.arrays import AnyArray

__all__ = ["alias_tables", "draw_alias"]


def alias_tables(
    probabilities: Float[np.ndarray, "r n"],
) -> tuple[Float[np.ndarray, "r n"], Int[np.ndarray, "r n"]]:
    """``keep`` and ``alias`` of every row, all rows side by side.

    Outcomes sorted by probability are walked through from both sides: the present rich one gives to the next poor one
    while it has more than its own column, and once it has less, becomes one itself and is given to by the next rich.
    """
    rows, count = probabilities.shape
    order = np.argsort(probabilities, axis=1, kind="stable")
    shares = count * np.take_along_axis(probabilities, order, axis=1)
    every = np.arange(rows)
    keep, alias = np.ones((rows, count)), np.tile(np.arange(count), (rows, 1))
    poor = np.zeros(rows, int)
    rich = np.minimum((shares < 1).sum(axis=1), count - 1)
    first_rich, left = rich.copy(), shares[every, rich]
    for _ in range(count):
        gives = (left >= 1) & (poor < first_rich)
        takes = (left < 1) & (rich < count - 1)
        g, t = every[gives], every[takes]
        keep[g, poor[g]], alias[g, poor[g]] = shares[g, poor[g]], rich[g]
        left[g] -= 1 - shares[g, poor[g]]
        poor[g] += 1
        keep[t, rich[t]], alias[t, rich[t]] = left[t], rich[t] + 1
        left[t] += shares[t, rich[t] + 1] - 1
        rich[t] += 1
    keeps, aliases = np.empty((rows, count), np.float32), np.empty((rows, count), np.int32)
    np.put_along_axis(keeps, order, keep.astype(np.float32), axis=1)
    np.put_along_axis(aliases, order, np.take_along_axis(order, alias, axis=1).astype(np.int32), axis=1)
    return keeps, aliases


def draw_alias(
    keep: Float[AnyArray, "r n"], alias: Int[AnyArray, "r n"], rows: Int[Array, " l"], uniform: Float[Array, " l"]
) -> Int[Array, " l"]:
    """An outcome of each lane's row; the integer part of ``n u`` is the column, its fraction decides."""
    count = keep.shape[1]
    scaled = uniform * count
    column = jnp.minimum(scaled.astype(jnp.int32), count - 1)
    place = rows * count + column
    return jnp.where(scaled - column < jnp.ravel(keep)[place], column, jnp.ravel(alias)[place])
