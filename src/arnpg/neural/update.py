"""One policy update of Algorithm 1 from a batch: the interface, and what passes through it."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, PRNGKeyArray

from .networks import AbstractPolicy

__all__ = ["AbstractUpdate", "Samples", "UpdateInfo", "UpdateState"]

UpdateState = Any


class Samples(eqx.Module):
    """Independent (s, a) with their advantages, time and path flattened into one axis; the values of the policy."""

    observations: Float[Array, "n o"]
    actions: Array
    advantages: Float[Array, " n"]
    values: Float[Array, " m"]


class UpdateInfo(eqx.Module):
    """KL between the new policy and the old, gain of the surrogate, and the part of the full update that was taken."""

    kl: Float[Array, ""]
    gain: Float[Array, ""]
    fraction: Float[Array, ""]


class AbstractUpdate(eqx.Module):
    """A policy from a policy and its samples; what an optimiser remembers is its state."""

    @abc.abstractmethod
    def start(self, policy: AbstractPolicy) -> UpdateState:
        """The state before the first update; none where nothing is remembered."""

    @abc.abstractmethod
    def __call__(
        self,
        policy: AbstractPolicy,
        anchor: AbstractPolicy,
        state: UpdateState,
        samples: Samples,
        discount: float,
        key: PRNGKeyArray,
    ) -> tuple[AbstractPolicy, UpdateState, UpdateInfo]:
        """One micro step from ``policy``, which collected the samples; ``key`` is for choosing parts of the batch."""
