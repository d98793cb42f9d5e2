"""Algorithm 1 with neural policies on environments of the host: any Gymnasium environment.

As on the device, a micro step's batch is the evaluation of the policy that collected it. The environments are stepped
from Python; everything learnt from a batch is one compiled call. Observations are standardised by running statistics:
a batch in the units of the policy that collected it, the policy after a micro step in those that include its batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int, PRNGKeyArray

from arnpg.envs.env import BoxActions
from arnpg.envs.host import AbstractHostEnvironment
from arnpg.errors import SettingsError
from arnpg.inner_loop import AbstractInnerLoop, InnerInfo

from .advantages import AbstractAdvantages, GeneralisedAdvantages
from .combine import AbstractCombine, Together
from .critics import AdamFit
from .dropped import mean_length, mean_of_rows
from .host_collection import collect_counted
from .host_rollout import LiveEnvironments
from .learner import AbstractNeuralInnerLoop, Learnt, same
from .natural_gradient import TrustRegion
from .networks import AbstractPolicy, Network
from .penalty import AnchorPenalty
from .rollout import Batch, Rollout
from .standardise import Standardised, Statistics
from .update import AbstractUpdate
from .values import AbstractValue, EpisodeTotal

__all__ = ["HostInnerLoop", "HostWork", "environments_closed"]

SMALL = Network((64, 64), jnp.tanh)


@contextlib.contextmanager
def environments_closed(inner: AbstractInnerLoop) -> Iterator[None]:
    """Around a run: environments of the host are closed at its end, whatever that is."""
    try:
        yield
    finally:
        if isinstance(inner, HostInnerLoop):
            inner.close()


class HostWork(eqx.Module):
    """What the loop carries; ``batch`` is in the units of ``behaviour``, ``statistics`` include it.

    ``unreported`` counts environment steps since the last ``InnerInfo``, ``lost`` episodes, where any may be.
    """

    key: PRNGKeyArray
    learnt: Learnt
    statistics: Statistics
    behaviour: Standardised
    batch: Batch
    unreported: Int[Array, ""]
    lost: Int[Array, ""] | None


class HostInnerLoop(AbstractNeuralInnerLoop):
    """Micro steps on an environment of the host; the parts are those of ``NeuralInnerLoop``.

    ``live`` holds the open environments, which are no part of a run's state: each batch begins with a seeded reset.
    """

    compiled: ClassVar[bool] = False
    vectorised: ClassVar[bool] = False

    env: AbstractHostEnvironment
    policy: Network = Network((64, 64), jnp.tanh, output_scale=0.1)
    critic: Network = SMALL
    rollout: Rollout = Rollout(2, 1024)
    advantages: AbstractAdvantages = GeneralisedAdvantages()
    combine: AbstractCombine = Together()
    update: AbstractUpdate = TrustRegion()
    penalty: AnchorPenalty = AnchorPenalty()
    fit: AdamFit = AdamFit()
    values: AbstractValue | tuple[AbstractValue, ...] = EpisodeTotal()
    discount: float = eqx.field(static=True, default=0.99)
    live: LiveEnvironments = eqx.field(static=True, default_factory=LiveEnvironments, repr=False)

    def __check_init__(self) -> None:
        self.check()
        limit = self.env.time_limit
        if self.rollout.steps < limit:
            raise SettingsError(
                f"rollout.steps must be at least the time limit of {self.env.label}, {limit}, got "
                f"{self.rollout.steps}, or a batch may hold no whole episode; lower time_limit."
            )

    def cuts(self) -> int:
        """An environment may truncate whenever it likes."""
        return self.rollout.steps

    def start(self, key: PRNGKeyArray) -> tuple[Standardised, HostWork]:
        """A policy and critics as drawn, and no batch yet."""
        own, key = jax.random.split(key)
        network, learnt = _untaught(self, own)
        statistics = Statistics.none(self.env.observation_size)
        policy = statistics.policy(network)
        # No policy equals one of NaN, so that nobody takes the empty batch for his own.
        nobody = jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), policy)
        none = jnp.zeros((), jnp.int32)
        lost = none if self.env.may_drop else None
        return policy, HostWork(key, learnt, statistics, nobody, self._nothing(), none, lost)

    def evaluate(self, policy: Standardised, work: HostWork) -> tuple[Float[Array, " m"], HostWork]:
        """``V_1..m`` from a new batch of the policy, which stays in ``work`` for the micro step that follows."""
        work = self._collect(policy, work)
        return _value_vector(self, work.learnt, work.batch), work

    def improve(
        self, anchor: Standardised, weights: Float[Array, " m"], micro_steps: int | Int[Array, ""], work: HostWork
    ) -> tuple[Standardised, HostWork, InnerInfo]:
        """``InnerLoop(anchor, <weights, r>, alpha, eta, micro_steps)``.

        KL to the anchor and entropy are means over the last batch, for which both see the same standardised states.
        """
        policy, weights = anchor, jnp.asarray(weights, jnp.float32)
        known = same(anchor, work.behaviour)
        for index in range(1 if _traced(work.key) else int(micro_steps)):
            if index or _traced(known) or not known:
                work = self._collect(policy, work)
            key, own = jax.random.split(work.key)
            network, learnt = _micro_step(self, policy.policy, anchor.policy, weights, work.batch, work.learnt, own)
            work = eqx.tree_at(lambda w: (w.key, w.learnt), work, (key, learnt))
            policy = work.statistics.policy(network)
        info = _shown(policy.policy, anchor.policy, work.batch, work.unreported, work.lost)
        spent = lambda w: (w.unreported, w.lost)  # noqa: E731
        return policy, eqx.tree_at(spent, work, jax.tree.map(jnp.zeros_like, spent(work)), is_leaf=_none), info

    def close(self) -> None:
        """Close the environments."""
        self.live.close()

    def _collect(self, policy: Standardised, work: HostWork) -> HostWork:
        key, own = jax.random.split(work.key)
        statistics, batch, lost, rounds = work.statistics, work.batch, work.lost, 1
        if not _traced(own):  # else only shapes are asked for
            with self.live.lend(self.env, self.rollout.paths) as live:
                raw, rounds, faults = collect_counted(self.rollout, live, policy, own, self.values)
            statistics = statistics.update(_played(raw))
            lost = None if lost is None else lost + faults
            both = (policy.seen(raw.observations), policy.seen(raw.next_observations))
            marks = raw.dropped if self.env.may_drop else None
            parts = lambda b: (b.observations, b.next_observations, b.dropped)  # noqa: E731
            batch = jax.tree.map(jnp.asarray, eqx.tree_at(parts, raw, (*both, marks)))
        steps = work.unreported + rounds * self.rollout.size
        return HostWork(key, work.learnt, statistics, policy, batch, steps, lost)

    def _nothing(self) -> Batch:
        """A batch of the right shapes."""
        shape = (self.rollout.steps, self.rollout.paths)
        seen, acted = (*shape, self.env.observation_size), self.env.actions
        actions = jnp.zeros((*shape, acted.size)) if isinstance(acted, BoxActions) else jnp.zeros(shape, jnp.int32)
        rewards, never = jnp.zeros((*shape, len(self.env.names))), jnp.zeros(shape, bool)
        dropped = never if self.env.may_drop else None
        return Batch(jnp.zeros(seen), actions, rewards, jnp.zeros(seen), never, never, dropped)


def _played(raw: Batch) -> np.ndarray:
    """The observations of the rows that are steps."""
    observations = np.asarray(raw.observations)
    return observations if raw.dropped is None else observations[~np.asarray(raw.dropped)]


def _none(value: Any) -> bool:
    return value is None


def _traced(value: Any) -> bool:
    """Whether only shapes are being computed."""
    return isinstance(value, Tracer)


@eqx.filter_jit
def _untaught(inner: HostInnerLoop, key: PRNGKeyArray) -> tuple[AbstractPolicy, Learnt]:
    return inner.untaught(key)


@eqx.filter_jit
def _value_vector(inner: HostInnerLoop, learnt: Learnt, batch: Batch) -> Float[Array, " m"]:
    return inner.value_vector(learnt.critics, batch)


@eqx.filter_jit
def _micro_step(
    inner: HostInnerLoop,
    policy: AbstractPolicy,
    anchor: AbstractPolicy,
    weights: Float[Array, " m"],
    batch: Batch,
    learnt: Learnt,
    key: PRNGKeyArray,
) -> tuple[AbstractPolicy, Learnt]:
    return inner.micro_step(policy, anchor, weights, batch, learnt, key)


@eqx.filter_jit
def _shown(
    policy: AbstractPolicy, anchor: AbstractPolicy, batch: Batch, steps: Int[Array, ""], lost: Int[Array, ""] | None
) -> InnerInfo:
    new, old = policy(batch.observations), anchor(batch.observations)
    kl, entropy = mean_of_rows(batch, new.kl(old)), mean_of_rows(batch, new.entropy())
    return InnerInfo(kl, entropy, steps, mean_length(batch), lost)
