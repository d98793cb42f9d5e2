"""Proximal updates: passes of Adam over shuffled parts of the batch, for a loss that stays near the old policy.

``ProximalLoss`` is that of FOCOPS, and with the anchor's term that of ARPPO (Appendix A.3). For each sample,
with ``ratio = pi/pi_old (a|s)``,

    [ KL(pi || pi_old) - ratio A / temperature ] [ KL(pi || pi_old) <= max_kl ] + alpha KL(pi || pi_k).

``ClippedLoss`` is PPO's, ``-min(ratio A, clip(ratio, 1 - c, 1 + c) A) + alpha KL(pi || pi_k)``.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from arnpg.errors import SettingsError

from .minibatches import minibatches
from .networks import AbstractDistribution, AbstractPolicy
from .update import AbstractUpdate, Samples, UpdateInfo

__all__ = ["AbstractLoss", "ClippedLoss", "Passes", "PassesState", "ProximalLoss"]


class AbstractLoss(eqx.Module):
    """What is minimised, one number a sample."""

    @abc.abstractmethod
    def __call__(
        self,
        new: AbstractDistribution,
        old: AbstractDistribution,
        anchor: AbstractDistribution,
        actions: Array,
        advantages: Float[Array, " n"],
    ) -> Float[Array, " n"]:
        """The loss of a policy whose distributions are ``new``."""


class ProximalLoss(AbstractLoss):
    """FOCOPS's loss with the anchor's KL; the mask is constant in the gradient and does not cover the anchor's term."""

    regularisation: float = 0.0
    temperature: float = 1.5
    max_kl: float = 0.02

    def __check_init__(self) -> None:
        for name in ("temperature", "max_kl"):
            value = getattr(self, name)
            if isinstance(value, float | int) and not value > 0:
                raise SettingsError(f"{name} must be positive, got {value}; the paper's runs use 1.5 and .02.")

    def __call__(
        self,
        new: AbstractDistribution,
        old: AbstractDistribution,
        anchor: AbstractDistribution,
        actions: Array,
        advantages: Float[Array, " n"],
    ) -> Float[Array, " n"]:
        """See the module's formula."""
        kl, ratio = new.kl(old), _ratio(new, old, actions)
        near = jax.lax.stop_gradient(kl <= self.max_kl)
        return (kl - ratio * advantages / self.temperature) * near + self.regularisation * new.kl(anchor)


class ClippedLoss(AbstractLoss):
    """PPO's clipped surrogate with the anchor's KL."""

    regularisation: float = 0.0
    clip: float = 0.2

    def __check_init__(self) -> None:
        if isinstance(self.clip, float | int) and not 0 < self.clip < 1:
            raise SettingsError(f"clip must lie in (0, 1), got {self.clip}; PPO's usual one is .2.")

    def __call__(
        self,
        new: AbstractDistribution,
        old: AbstractDistribution,
        anchor: AbstractDistribution,
        actions: Array,
        advantages: Float[Array, " n"],
    ) -> Float[Array, " n"]:
        """See the module's formula."""
        ratio = _ratio(new, old, actions)
        clipped = jnp.clip(ratio, 1 - self.clip, 1 + self.clip)
        return self.regularisation * new.kl(anchor) - jnp.minimum(ratio * advantages, clipped * advantages)


class PassesState(eqx.Module):
    """Adam's moments over the flat parameters, and the number of updates so far."""

    moments: Any
    updates: Int[Array, ""]


class Passes(AbstractUpdate):
    """``epochs`` of Adam over minibatches, all compiled; stops between epochs when the batch's mean KL is too large.

    Arguments: the ``loss``; ``learning_rate``, which falls linearly to 0 over ``updates`` micro steps (0: it stays);
    ``epochs``; rows of a ``minibatch``; ``stop_kl``, the mean ``KL(pi || pi_old)`` that ends the epochs;
    ``gradient_clip``, the longest gradient.
    """

    loss: AbstractLoss = ProximalLoss()
    learning_rate: float = 3e-4
    epochs: int = eqx.field(static=True, default=10)
    minibatch: int = eqx.field(static=True, default=64)
    stop_kl: float = 0.02
    gradient_clip: float = 40.0
    updates: int = eqx.field(static=True, default=0)

    def __check_init__(self) -> None:
        for name in ("epochs", "minibatch"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, got {getattr(self, name)}; the paper's runs: 10, 64.")

    def start(self, policy: AbstractPolicy) -> PassesState:
        """Adam before its first step."""
        return PassesState(optax.scale_by_adam().init(ravel_pytree(policy)[0]), jnp.zeros((), jnp.int32))

    def __call__(
        self,
        policy: AbstractPolicy,
        anchor: AbstractPolicy,
        state: PassesState,
        samples: Samples,
        discount: float,
        key: PRNGKeyArray,
    ) -> tuple[AbstractPolicy, PassesState, UpdateInfo]:
        """All epochs; ``fraction`` in the info is the share of them that was run."""
        del discount
        flat, unravel = ravel_pytree(policy)
        old, centre = policy(samples.observations), anchor(samples.observations)
        whole = (samples.observations, samples.actions, samples.advantages, old, centre)
        rate = self._rate(state.updates)

        def objective(theta: Array, part: tuple) -> Float[Array, ""]:
            observations, actions, advantages, old, centre = part
            return self.loss(unravel(theta)(observations), old, centre, actions, advantages).mean()

        def epoch(carry: tuple) -> tuple:
            count, theta, moments, _ = carry
            rows = minibatches(jax.random.fold_in(key, count), len(samples.advantages), self.minibatch)
            theta, moments = self._pass(jax.grad(objective), theta, moments, rate, whole, rows)
            return count + 1, theta, moments, unravel(theta)(samples.observations).kl(old).mean()

        def going_on(carry: tuple) -> Bool[Array, ""]:
            return (carry[0] < self.epochs) & (carry[3] <= self.stop_kl)

        start = (jnp.zeros((), jnp.int32), flat, state.moments, jnp.zeros((), flat.dtype))
        count, theta, moments, kl = jax.lax.while_loop(going_on, epoch, start)
        new = unravel(theta)
        gain = ((_ratio(new(samples.observations), old, samples.actions) - 1) * samples.advantages).mean()
        return new, PassesState(moments, state.updates + 1), UpdateInfo(kl, gain, count / self.epochs)

    def _rate(self, done: Int[Array, ""]) -> Array:
        left = jnp.maximum(1 - done / self.updates, 0) if self.updates else 1.0
        return jnp.asarray(self.learning_rate * left, jnp.float32)

    def _pass(
        self, slope_of: Callable, theta: Array, moments: Any, rate: Array, whole: tuple, rows: Int[Array, "n k"]
    ) -> tuple[Array, Any]:
        """One epoch: a step of Adam for each minibatch."""

        def step(carry: tuple[Array, Any], chosen: Int[Array, " k"]) -> tuple[tuple[Array, Any], None]:
            theta, moments = carry
            slope = slope_of(theta, jax.tree.map(lambda leaf: leaf[chosen], whole))
            slope = slope * jnp.minimum(1, self.gradient_clip / (jnp.linalg.norm(slope) + 1e-12))
            change, moments = optax.scale_by_adam().update(slope, moments)
            return (theta - rate * jnp.asarray(change), moments), None

        return jax.lax.scan(step, (theta, moments), rows)[0]


def _ratio(new: AbstractDistribution, old: AbstractDistribution, actions: Array) -> Array:
    return jnp.exp(new.log_prob(actions) - old.log_prob(actions))
