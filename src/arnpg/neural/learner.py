"""What a neural micro step does with a batch, wherever the batch came from: ``advantages x combine x update x fit``.

The inner loops of the device and of the host differ in how they collect; what they learn, and how, is here.
"""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from arnpg.errors import SettingsError
from arnpg.inner_loop import AbstractInnerLoop

from .advantages import AbstractAdvantages, path_values
from .combine import AbstractCombine
from .critics import AdamFit, CriticState
from .dropped import cut_before, replaced, value_means
from .networks import AbstractPolicy, Critics, Network, make_policy
from .penalty import AnchorPenalty
from .rollout import Batch
from .update import AbstractUpdate, Samples, UpdateInfo, UpdateState
from .values import AbstractValue

__all__ = ["AbstractNeuralInnerLoop", "Diagnostics", "Learnt", "explained_variance", "same"]


class Diagnostics(eqx.Module):
    """The last micro step: its update, and how much of its batch's targets each critic had foreseen."""

    update: UpdateInfo
    explained: Float[Array, " m"]


class Learnt(eqx.Module):
    """What learning carries beside the policy: critics, their optimiser's state, the update's."""

    critics: Critics
    fit: CriticState
    update: UpdateState
    diagnostics: Diagnostics


class AbstractNeuralInnerLoop(AbstractInnerLoop):
    """Algorithm 1 with neural policies; a subclass says how batches are collected."""

    env: eqx.AbstractVar[Any]
    policy: eqx.AbstractVar[Network]
    critic: eqx.AbstractVar[Network]
    rollout: eqx.AbstractVar[Any]
    advantages: eqx.AbstractVar[AbstractAdvantages]
    combine: eqx.AbstractVar[AbstractCombine]
    update: eqx.AbstractVar[AbstractUpdate]
    penalty: eqx.AbstractVar[AnchorPenalty]
    fit: eqx.AbstractVar[AdamFit]
    values: eqx.AbstractVar[AbstractValue | tuple[AbstractValue, ...]]
    discount: eqx.AbstractVar[float]

    @abc.abstractmethod
    def cuts(self) -> int:
        """How often a path of a batch is cut at most: at truncations, and at its end."""

    def check(self) -> None:
        """Refuse settings that no batch could be learnt from."""
        names = self.env.names
        if not 0 <= self.discount < 1:
            raise SettingsError(f"discount must lie in [0, 1), got {self.discount}; the paper's Acrobot runs use .98.")
        if isinstance(self.values, tuple) and len(self.values) != len(names):
            raise SettingsError(
                f"values must hold one part for each of {names}, got {len(self.values)}; give one alone to use it "
                "for all."
            )

    def untaught(self, key: PRNGKeyArray) -> tuple[AbstractPolicy, Learnt]:
        """A policy and critics as drawn."""
        policy_key, critic_key = jax.random.split(key)
        size, count = self.env.observation_size, len(self.env.names)
        policy = make_policy(policy_key, self.policy, size, self.env.actions)
        critics = Critics.build(critic_key, self.critic, size, count)
        zero = jnp.zeros((), jnp.float32)
        shown = Diagnostics(UpdateInfo(zero, zero, zero), jnp.zeros(count, jnp.float32))
        return policy, Learnt(critics, self.fit.start(critics), self.update.start(policy), shown)

    def value_vector(self, critics: Critics, batch: Batch) -> Float[Array, " m"]:
        """``V_1..m`` of the policy that collected the batch."""
        _, bootstrap = path_values(critics, cut_before(batch), self.cuts())
        return value_means(self.values, bootstrap, batch, self.discount)

    def micro_step(
        self,
        policy: AbstractPolicy,
        anchor: AbstractPolicy,
        weights: Float[Array, " m"],
        batch: Batch,
        learnt: Learnt,
        key: PRNGKeyArray,
    ) -> tuple[AbstractPolicy, Learnt]:
        """One step of equation (6) on the batch of the policy, then the critics' fit to the same batch."""
        update_key, fit_key = jax.random.split(key)
        cut = cut_before(batch)
        values, bootstrap = path_values(learnt.critics, cut, self.cuts())
        separate, targets = self.advantages(cut, values, bootstrap, self.discount)
        penalty = self.penalty(policy, anchor, cut, self.discount)[0]
        rows = (batch.observations, batch.actions, separate, penalty, values, targets)
        observations, actions, separate, penalty, values, targets = replaced(batch, jax.random.fold_in(key, 2), rows)
        combined = self.combine(separate, weights.astype(separate.dtype), penalty)
        vector = value_means(self.values, bootstrap, batch, self.discount)
        samples = Samples(_flat(observations), _flat(actions), _flat(combined), vector)
        policy, state, update = self.update(policy, anchor, learnt.update, samples, self.discount, update_key)
        critics, fit = self.fit(learnt.critics, learnt.fit, samples.observations, _flat(targets), fit_key)
        shown = Diagnostics(update, explained_variance(values, targets))
        return policy, Learnt(critics, fit, state, shown)


def explained_variance(values: Float[Array, "t b m"], targets: Float[Array, "t b m"]) -> Float[Array, " m"]:
    """``1 - Var(target - V) / Var(target)`` of each objective; 0 for one that does not vary."""
    variance = targets.var((0, 1))
    missed = (targets - values).var((0, 1))
    return jnp.where(variance > 0, 1 - missed / jnp.where(variance > 0, variance, 1), 0)


def same(one: PyTree, other: PyTree) -> Bool[Array, ""]:
    """Whether two policies are equal in every parameter."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return jnp.stack([(a == b).all() for a, b in pairs]).all()


def _flat(array: Array) -> Array:
    return array.reshape(-1, *array.shape[2:])
