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
from jaxtyping import Array, Float, Int, PRNGKeyArray

from arnpg.envs.env import AbstractEnvironment
from arnpg.inner_loop import InnerInfo

from .advantages import AbstractAdvantages, MonteCarlo
from .combine import AbstractCombine, Together
from .critics import AdamFit
from .learner import AbstractNeuralInnerLoop, Learnt, same
from .natural_gradient import TrustRegion
from .networks import AbstractPolicy, Network
from .penalty import AnchorPenalty
from .rollout import Batch, Rollout
from .update import AbstractUpdate
from .values import AbstractValue, PathTotal, episode_lengths

__all__ = ["NeuralInnerLoop", "NeuralWork"]


class NeuralWork(eqx.Module):
    """What the loop carries: key, what is learnt, the last batch with the policy that collected it.

    ``unreported`` counts the environment steps since the last ``InnerInfo``.
    """

    key: PRNGKeyArray
    learnt: Learnt
    behaviour: AbstractPolicy
    batch: Batch
    unreported: Int[Array, ""]


class NeuralInnerLoop(AbstractNeuralInnerLoop):
    """Micro steps of natural policy gradient on an environment of the device.

    Arguments: the environment; the policy's and the critics' networks; ``discount`` of advantages; what a batch is, how
    advantages are estimated and combined, the update, the anchor's penalty and the critics' fit, each a part;
    ``values``, one notion of value for all objectives or a tuple with one each.
    """

    vectorised: ClassVar[bool] = False

    env: AbstractEnvironment
    policy: Network = Network()
    critic: Network = Network()
    rollout: Rollout = Rollout()
    advantages: AbstractAdvantages = MonteCarlo()
    combine: AbstractCombine = Together()
    update: AbstractUpdate = TrustRegion()
    penalty: AnchorPenalty = AnchorPenalty()
    fit: AdamFit = AdamFit()
    values: AbstractValue | tuple[AbstractValue, ...] = PathTotal()
    discount: float = eqx.field(static=True, default=0.98)

    def __check_init__(self) -> None:
        self.check()

    def cuts(self) -> int:
        """A path begun with a reset is truncated by nothing but the time limit."""
        return self.rollout.steps // self.env.time_limit + 1

    def start(self, key: PRNGKeyArray) -> tuple[AbstractPolicy, NeuralWork]:
        """A policy and critics as drawn, and no batch yet."""
        own, key = jax.random.split(key)
        policy, learnt = self.untaught(own)
        shapes = eqx.filter_eval_shape(self.rollout.collect, self.env, policy, key)
        batch = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        # No policy equals one of NaN, so that nobody takes the empty batch for his own.
        nobody = jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), policy)
        return policy, NeuralWork(key, learnt, nobody, batch, jnp.zeros((), jnp.int32))

    def evaluate(self, policy: AbstractPolicy, work: NeuralWork) -> tuple[Float[Array, " m"], NeuralWork]:
        """``V_1..m`` from a new batch of the policy, which stays in ``work`` for the micro step that follows."""
        work = self._collect(policy, work)
        return self.value_vector(work.learnt.critics, work.batch), work

    def improve(
        self, anchor: AbstractPolicy, weights: Float[Array, " m"], micro_steps: int | Int[Array, ""], work: NeuralWork
    ) -> tuple[AbstractPolicy, NeuralWork, InnerInfo]:
        """``InnerLoop(anchor, <weights, r>, alpha, eta, micro_steps)``.

        KL to the anchor and entropy are means over the states of the last batch.
        """
        known = same(anchor, work.behaviour)

        def micro_step(index: Array, carry: tuple[AbstractPolicy, NeuralWork]) -> tuple[AbstractPolicy, NeuralWork]:
            policy, work = carry
            work = jax.lax.cond((index == 0) & known, lambda w: w, lambda w: self._collect(policy, w), work)
            key, own = jax.random.split(work.key)
            policy, learnt = self.micro_step(policy, anchor, weights, work.batch, work.learnt, own)
            return policy, eqx.tree_at(lambda w: (w.key, w.learnt), work, (key, learnt))

        policy, work = jax.lax.fori_loop(0, micro_steps, micro_step, (anchor, work))
        new, old = policy(work.batch.observations), anchor(work.batch.observations)
        length = episode_lengths(work.batch).mean()
        info = InnerInfo(new.kl(old).mean(), new.entropy().mean(), work.unreported, length)
        return policy, eqx.tree_at(lambda w: w.unreported, work, jnp.zeros((), jnp.int32)), info

    def _collect(self, policy: AbstractPolicy, work: NeuralWork) -> NeuralWork:
        key, own = jax.random.split(work.key)
        batch = self.rollout.collect(self.env, policy, own)
        steps = work.unreported + self.rollout.size
        return eqx.tree_at(lambda w: (w.key, w.behaviour, w.batch, w.unreported), work, (key, policy, batch, steps))
