"""A trained policy for use: NumPy observations in, NumPy actions out; and the same without chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from arnpg.arrays import AnyArray
from arnpg.errors import SettingsError

from .networks import AbstractDistribution, AbstractPolicy

__all__ = ["Actor", "Greedy"]


class Actor:
    """``actor(observations)`` is the most probable action of each; with ``rng`` actions are drawn."""

    def __init__(self, policy: AbstractPolicy, observation_size: int) -> None:
        """``policy`` is one policy, without a leading axis."""
        self.policy, self.observation_size = policy, observation_size

    def __call__(self, observations: np.ndarray, *, rng: np.random.Generator | None = None) -> np.ndarray:
        """Actions for observations of shape ``(o,)`` or ``(..., o)``."""
        seen = np.asarray(observations, np.float32)
        if seen.ndim == 0 or seen.shape[-1] != self.observation_size:
            raise SettingsError(
                f"observations must have {self.observation_size} entries in their last axis, got shape {seen.shape}."
            )
        if not np.isfinite(seen).all():
            raise SettingsError("observations must be finite, got NaN or infinity; look at what the environment sent.")
        if rng is None:
            return np.asarray(_mode(self.policy, seen))
        return np.asarray(_draw(self.policy, seen, jax.random.key(int(rng.integers(2**32)))))


@eqx.filter_jit
def _mode(policy: AbstractPolicy, observations: AnyArray) -> Array:
    return policy(observations).mode()


@eqx.filter_jit
def _draw(policy: AbstractPolicy, observations: AnyArray, key: PRNGKeyArray) -> Array:
    return policy(observations).sample(policy.noise(key, observations.shape[:-1]))


class Greedy(AbstractPolicy):
    """A policy whose samples are the modes of another."""

    policy: AbstractPolicy

    def __call__(self, observations: Float[Array, "*batch o"]) -> Any:
        """The same distributions, sampled without chance."""
        return _Certain(self.policy(observations))

    def noise(self, key: PRNGKeyArray, shape: Sequence[int]) -> Array:
        """As the policy draws it; nobody looks at it."""
        return self.policy.noise(key, shape)


class _Certain(eqx.Module):
    distribution: AbstractDistribution

    def sample(self, noise: Array) -> Array:
        del noise
        return self.distribution.mode()
