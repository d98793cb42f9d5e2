"""Algorithm 1 with neural policies: ``collect x advantages x update x fit critics``, once a micro step.

A micro step needs a batch of the policy it starts from, and that batch is the evaluation of that policy.  So
``evaluate`` collects the batch of its policy, hands back its value vector and leaves it in ``work``, and the first
micro step of an ``improve`` from the same policy takes it from there: a macro step of ``t_k`` micro steps costs
``t_k`` batches, evaluation included.  An anchor that was not the last policy evaluated (ARNPG-OMDA goes back to
it) is sampled anew.
"""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from arnpg.envs.env import AbstractEnvironment
from arnpg.errors import SettingsError
from arnpg.inner_loop import AbstractInnerLoop, InnerInfo

from .advantages import AbstractAdvantages, MonteCarlo, path_values
from .critics import AdamFit, CriticState
from .natural_gradient import AbstractUpdate, Samples, TrustRegion, UpdateInfo
from .networks import AbstractPolicy, Critics, Network, make_policy
from .penalty import AnchorPenalty
from .rollout import Batch, Rollout
from .values import AbstractValue, PathTotal, path_totals

__all__ = ["Diagnostics", "NeuralInnerLoop", "NeuralWork"]


class Diagnostics(eqx.Module):
    """The last micro step: its update, and how much of its batch's targets each critic had foreseen."""

    update: UpdateInfo
    explained: Float[Array, " m"]


class NeuralWork(eqx.Module):
    """What the loop carries: key, critics and their optimiser, the last batch with the policy that collected it.

    ``unreported`` counts the environment steps since the last ``InnerInfo``.
    """

    key: PRNGKeyArray
    critics: Critics
    fit: CriticState
    behaviour: AbstractPolicy
    batch: Batch
    unreported: Int[Array, ""]
    diagnostics: Diagnostics


class NeuralInnerLoop(AbstractInnerLoop):
    """Micro steps of natural policy gradient on an environment of the device.

    Arguments: the environment; the policy's and the critics' networks; ``discount`` of advantages; what a batch is, how
    advantages are estimated, the update, the anchor's penalty and the critics' fit, each a part; ``values``, one notion
    of value for all objectives or a tuple with one each; ``normalise``, whether the combined advantage is brought to
    mean 0 and deviation 1 (the paper's runs: yes; the closed form of ``FixedStep``: no).
    """

    vectorised: ClassVar[bool] = False

    env: AbstractEnvironment
    policy: Network = Network()
    critic: Network = Network()
    rollout: Rollout = Rollout()
    advantages: AbstractAdvantages = MonteCarlo()
    update: AbstractUpdate = TrustRegion()
    penalty: AnchorPenalty = AnchorPenalty()
    fit: AdamFit = AdamFit()
    values: AbstractValue | tuple[AbstractValue, ...] = PathTotal()
    discount: float = eqx.field(static=True, default=0.98)
    normalise: bool = eqx.field(static=True, default=True)

    def __check_init__(self) -> None:
        if not 0 <= self.discount < 1:
            raise SettingsError(f"discount must lie in [0, 1), got {self.discount}; the paper's Acrobot runs use .98.")
        count = len(self.env.names)
        if isinstance(self.values, tuple) and len(self.values) != count:
            raise SettingsError(
                f"values must hold one part for each of {self.env.names}, got {len(self.values)}; "
                "give one alone to use it for all."
            )

    def start(self, key: PRNGKeyArray) -> tuple[AbstractPolicy, NeuralWork]:
        """A policy and critics as drawn, and no batch yet."""
        policy_key, critic_key, key = jax.random.split(key, 3)
        size, count = self.env.observation_size, len(self.env.names)
        policy = make_policy(policy_key, self.policy, size, self.env.actions)
        critics = Critics.build(critic_key, self.critic, size, count)
        shapes = eqx.filter_eval_shape(self.rollout.collect, self.env, policy, key)
        batch = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        zero = jnp.zeros((), jnp.float32)
        shown = Diagnostics(UpdateInfo(zero, zero, zero), jnp.zeros(count, jnp.float32))
        # No policy equals one of NaN, so that nobody takes the empty batch for his own.
        nobody = jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), policy)
        work = NeuralWork(key, critics, self.fit.start(critics), nobody, batch, jnp.zeros((), jnp.int32), shown)
        return policy, work

    def evaluate(self, policy: AbstractPolicy, work: NeuralWork) -> tuple[Float[Array, " m"], NeuralWork]:
        """``V_1..m`` from a new batch of the policy, which stays in ``work`` for the micro step that follows."""
        work = self._collect(policy, work)
        _, bootstrap = path_values(work.critics, work.batch, self.env.time_limit)
        return self._value_vector(bootstrap, work.batch), work

    def improve(
        self,
        anchor: AbstractPolicy,
        weights: Float[Array, " m"],
        micro_steps: int | Int[Array, ""],
        work: NeuralWork,
    ) -> tuple[AbstractPolicy, NeuralWork, InnerInfo]:
        """``InnerLoop(anchor, <weights, r>, alpha, eta, micro_steps)``.

        KL to the anchor and entropy are means over the states of the last batch.
        """
        known = _same(anchor, work.behaviour)

        def micro_step(index: Array, carry: tuple[AbstractPolicy, NeuralWork]) -> tuple[AbstractPolicy, NeuralWork]:
            policy, work = carry
            work = jax.lax.cond((index == 0) & known, lambda w: w, lambda w: self._collect(policy, w), work)
            return self._micro_step(policy, anchor, jnp.asarray(weights, jnp.float32), work)

        policy, work = jax.lax.fori_loop(0, micro_steps, micro_step, (anchor, work))
        new, old = policy(work.batch.observations), anchor(work.batch.observations)
        info = InnerInfo(new.kl(old).mean(), new.entropy().mean(), work.unreported)
        return policy, eqx.tree_at(lambda w: w.unreported, work, jnp.zeros((), jnp.int32)), info

    def _collect(self, policy: AbstractPolicy, work: NeuralWork) -> NeuralWork:
        key, own = jax.random.split(work.key)
        batch = self.rollout.collect(self.env, policy, own)
        steps = work.unreported + self.rollout.size
        return eqx.tree_at(lambda w: (w.key, w.behaviour, w.batch, w.unreported), work, (key, policy, batch, steps))

    def _micro_step(
        self, policy: AbstractPolicy, anchor: AbstractPolicy, weights: Float[Array, " m"], work: NeuralWork
    ) -> tuple[AbstractPolicy, NeuralWork]:
        """One step of equation (6) on the batch of the policy, then the critics' fit to the same batch."""
        key, update_key, fit_key = jax.random.split(work.key, 3)
        batch = work.batch
        values, bootstrap = path_values(work.critics, batch, self.env.time_limit)
        separate, targets = self.advantages(batch, values, bootstrap, self.discount)
        combined = separate @ weights + self.penalty(policy, anchor, batch, self.discount)[0]
        if self.normalise:
            combined = (combined - combined.mean()) / (combined.std() + 1e-8)
        vector = self._value_vector(bootstrap, batch)
        samples = Samples(_flat(batch.observations), _flat(batch.actions), _flat(combined), vector)
        policy, update = self.update(policy, samples, self.discount, update_key)
        critics, fit = self.fit(work.critics, work.fit, samples.observations, _flat(targets), fit_key)
        shown = Diagnostics(update, explained_variance(values, targets))
        work = eqx.tree_at(lambda w: (w.key, w.critics, w.fit, w.diagnostics), work, (key, critics, fit, shown))
        return policy, work

    def _value_vector(self, bootstrap: Float[Array, "t b m"], batch: Batch) -> Float[Array, " m"]:
        return path_totals(self.values, bootstrap, batch, self.discount).mean(0)


def explained_variance(values: Float[Array, "t b m"], targets: Float[Array, "t b m"]) -> Float[Array, " m"]:
    """``1 - Var(target - V) / Var(target)`` of each objective; 0 for one that does not vary."""
    variance = targets.var((0, 1))
    missed = (targets - values).var((0, 1))
    return jnp.where(variance > 0, 1 - missed / jnp.where(variance > 0, variance, 1), 0)


def _flat(array: Array) -> Array:
    return array.reshape(-1, *array.shape[2:])


def _same(one: PyTree, other: PyTree) -> Bool[Array, ""]:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return jnp.stack([(a == b).all() for a, b in pairs]).all()
