"""Observations in units of their own mean and deviation: running statistics, and a policy that knows its own.

The statistics grow with every batch and belong to ``work``; a policy keeps those that it was last trained with, so that
it means the same inside the loop, in a file and in a robot (Appendix A.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from arnpg.arrays import AnyArray

from .networks import AbstractDistribution, AbstractPolicy

__all__ = ["CLIP", "Standardised", "Statistics"]

CLIP = 5.0
# Below it an entry of the observation counts as constant.
LEAST_VARIANCE = 1e-8

Anything = TypeVar("Anything", np.ndarray, Array)


class Statistics(eqx.Module):
    """Count, mean and variance of all observations so far."""

    count: Float[AnyArray, ""]
    mean: Float[AnyArray, " o"]
    variance: Float[AnyArray, " o"]

    @classmethod
    def none(cls, size: int) -> Statistics:
        """Before any observation: mean 0, variance 1."""
        return cls(jnp.zeros(()), jnp.zeros(size), jnp.ones(size))

    def update(self, rows: Float[np.ndarray, "*batch o"]) -> Statistics:
        """With more observations; the moments of two samples put together (Chan et al. 1983), in float64."""
        rows = rows.reshape(-1, rows.shape[-1]).astype(np.float64)
        mean, variance = np.asarray(self.mean, np.float64), np.asarray(self.variance, np.float64)
        total = float(self.count) + len(rows)
        share, shift = len(rows) / total, rows.mean(0) - mean
        merged = (1 - share) * variance + share * rows.var(0) + share * (1 - share) * shift**2
        found = (np.asarray(total), mean + share * shift, merged)
        return Statistics(*(jnp.asarray(x, jnp.float32) for x in found))

    def policy(self, network: AbstractPolicy) -> Standardised:
        """A policy that sees its observations in these units."""
        return Standardised(network, self.mean, 1 / jnp.sqrt(jnp.maximum(self.variance, LEAST_VARIANCE)))


class Standardised(AbstractPolicy):
    """``pi(. | clip((s - shift) * scale))``."""

    policy: AbstractPolicy
    shift: Float[AnyArray, " o"]
    scale: Float[AnyArray, " o"]

    def __call__(self, observations: Float[Array, "*batch o"]) -> AbstractDistribution:
        """The distributions for raw observations."""
        return self.policy(self.seen(observations))

    def noise(self, key: PRNGKeyArray, shape: Sequence[int]) -> Array:
        """As the policy draws it."""
        return self.policy.noise(key, shape)

    def seen(self, observations: Any) -> Any:
        """What the network is given for raw observations, NumPy or JAX."""
        return standardised(observations, self.shift, self.scale)


def standardised(observations: Anything, shift: Any, scale: Any) -> Anything:
    """``clip((s - shift) * scale, -5, 5)``, in the kind of array that it is given."""
    return ((observations - shift) * scale).clip(-CLIP, CLIP)
