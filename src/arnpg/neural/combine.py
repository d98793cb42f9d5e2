"""One advantage from those of m objectives: ``<G, A> + penalty``, and in which units (Section 5.3).

A trust region or a clipped ratio fixes the size of a step; units then decide how much an objective counts. ``Together``
keeps the exchange rate that the weights state, in the rewards' own units; ``Each`` makes a weight of 1 mean as much for
a reward of thousands as for a cost of tens, which is what FOCOPS's dual between 0 and 2 supposes.
"""

from __future__ import annotations

import abc

import equinox as eqx
from jaxtyping import Array, Float

__all__ = ["AbstractCombine", "AsTheyAre", "Each", "Together"]

# Below it an advantage is noise of the critic; unit variance would make it a signal.
LEAST_DEVIATION = 1e-6


class AbstractCombine(eqx.Module):
    """What an update is to climb."""

    @abc.abstractmethod
    def __call__(
        self, separate: Float[Array, "t b m"], weights: Float[Array, " m"], penalty: Float[Array, "t b"]
    ) -> Float[Array, "t b"]:
        """The combined advantage; the penalty is the anchor's, in the units of the weighted rewards."""


class AsTheyAre(AbstractCombine):
    """``<G, A> + penalty``: the closed form of equation (6)."""

    def __call__(
        self, separate: Float[Array, "t b m"], weights: Float[Array, " m"], penalty: Float[Array, "t b"]
    ) -> Float[Array, "t b"]:
        """In the rewards' units."""
        return separate @ weights + penalty


class Together(AbstractCombine):
    """The same, brought to mean 0 and deviation 1 (the paper's Acrobot runs)."""

    def __call__(
        self, separate: Float[Array, "t b m"], weights: Float[Array, " m"], penalty: Float[Array, "t b"]
    ) -> Float[Array, "t b"]:
        """In units of its own deviation."""
        combined = separate @ weights + penalty
        return (combined - combined.mean()) / (combined.std() + 1e-8)


class Each(AbstractCombine):
    """Each objective's advantages brought to mean 0 and deviation 1, then weighted (the paper's Hopper runs).

    An objective that hardly varies stays small: a cost of exactly 0 has advantages that are its critic's noise.
    """

    def __call__(
        self, separate: Float[Array, "t b m"], weights: Float[Array, " m"], penalty: Float[Array, "t b"]
    ) -> Float[Array, "t b"]:
        """In units of each objective's deviation."""
        return (separate - separate.mean((0, 1))) / (separate.std((0, 1)) + LEAST_DEVIATION) @ weights + penalty
