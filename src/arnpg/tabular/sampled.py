"""Algorithm 1 with gradients estimated from trajectories of a generative model (Section 5.2, Appendix A.1, C.2).

For every state and action, ``trajectories`` independent ones are started there and run for a geometric number of steps
with parameter ``1 - gamma``; the undiscounted sum of what is met on the way is an unbiased estimate of ``Q``, of all
rewards and of the divergence from the anchor at once. The same estimate of a policy serves as its evaluation.
"""

import functools
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt

from arnpg.arrays import AnyArray, Scalar
from arnpg.errors import SettingsError
from arnpg.inner_loop import AbstractInnerLoop, InnerInfo, require_positive
from arnpg.tabular.exact import regularised_step
from arnpg.tabular.simulator import AbstractSimulator, draw, streams, uniforms

__all__ = ["SampledInnerLoop", "SampledPolicy", "estimate"]

BLOCKS = 16
LARGEST = 2**31 - 1


class SampledPolicy(eqx.Module):
    """``log pi(a | s)`` and estimates of ``Q_i^pi(s, a)``."""

    log_policy: Float[AnyArray, "s a"]
    action_values: Float[AnyArray, "m s a"]


class _Lanes(eqx.Module):
    """Trajectories on their way: where they are, how far they will go, and the sums so far."""

    states: Int[Array, " n"]
    actions: Int[Array, " n"]
    totals: tuple[Float[Array, " n"], ...]
    time: Int[Array, ""]
    stream: UInt[Array, " n"]


class SampledInnerLoop(AbstractInnerLoop):
    """InnerLoop(r~, anchor, alpha, eta, t_k) by sampling; ``work`` is a random key."""

    float64: ClassVar[bool] = True
    vectorised: ClassVar[bool] = False  # an estimate fills a core: side by side they are no quicker than one by one

    simulator: AbstractSimulator
    step_size: Scalar
    regularisation: Scalar
    trajectories: int

    def __check_init__(self) -> None:
        """Positive settings."""
        require_positive("step_size", self.step_size)
        require_positive("regularisation", self.regularisation)
        if isinstance(self.trajectories, bool) or not isinstance(self.trajectories, int) or self.trajectories < 1:
            raise SettingsError(f"trajectories must be a whole number >= 1, got {self.trajectories!r}.")

    def start(self, key: PRNGKeyArray) -> tuple[SampledPolicy, PRNGKeyArray]:
        """The uniform policy, with its first estimate."""
        work, key = jax.random.split(key)
        actions = self.simulator.actions
        uniform = jnp.full((len(self.simulator.initial), actions), -jnp.log(actions), float)
        return SampledPolicy(uniform, self._estimate(uniform, uniform, key)[0][:-1]), work

    def improve(
        self,
        anchor: SampledPolicy,
        weights: Float[AnyArray, " m"],
        micro_steps: int | Int[AnyArray, ""],
        work: PRNGKeyArray,
    ) -> tuple[SampledPolicy, PRNGKeyArray, InnerInfo]:
        """``t_k`` closed-form steps on estimates of ``Q~``."""

        def micro_step(_: Any, loop: Any) -> Any:
            policy, divergence, work, taken = loop
            work, key = jax.random.split(work)
            advantage = jnp.tensordot(weights, policy.action_values, 1) - self.regularisation * divergence
            rate = self.step_size / (1 - self.simulator.discount)
            keep = rate * self.regularisation
            log_policy = regularised_step(policy.log_policy, anchor.log_policy, advantage, rate, keep)
            sums, steps = self._estimate(log_policy, anchor.log_policy, key)
            return SampledPolicy(log_policy, sums[:-1]), sums[-1], work, taken + steps

        start = (anchor, jnp.zeros_like(anchor.log_policy), work, jnp.zeros((), int))
        if isinstance(micro_steps, int) and micro_steps == 1:
            policy, divergence, work, taken = micro_step(0, start)
        else:
            policy, divergence, work, taken = jax.lax.fori_loop(0, micro_steps, micro_step, start)
        return policy, work, self._info(policy, anchor, divergence, taken)

    def evaluate(self, policy: SampledPolicy, work: PRNGKeyArray) -> tuple[Float[Array, " m"], PRNGKeyArray]:
        """``sum_{s, a} rho(s) pi(a | s) Q_i(s, a)`` of the policy's own estimate."""
        joint = self.simulator.initial[:, None] * jnp.exp(policy.log_policy)
        return jnp.tensordot(policy.action_values, joint, 2), work

    def _info(self, policy: SampledPolicy, anchor: SampledPolicy, divergence: Array, taken: Array) -> InnerInfo:
        probabilities = jnp.exp(policy.log_policy)
        here = policy.log_policy - anchor.log_policy + divergence
        kl = (1 - self.simulator.discount) * jnp.sum(self.simulator.initial[:, None] * probabilities * here)
        return InnerInfo(kl, -jnp.mean(jnp.sum(probabilities * policy.log_policy, axis=1)), taken)

    def _estimate(self, log_policy: AnyArray, log_anchor: AnyArray, key: PRNGKeyArray) -> tuple[Array, Array]:
        return estimate(self.simulator, log_policy, log_anchor, self.trajectories, key)


def estimate(
    simulator: AbstractSimulator,
    log_policy: Float[AnyArray, "s a"],
    log_anchor: Float[AnyArray, "s a"],
    trajectories: int,
    key: PRNGKeyArray,
) -> tuple[Float[Array, "k s a"], Int[Array, ""]]:
    """Unbiased estimates of ``Q_1..Q_m`` and of ``E[sum_{t >= 1} gamma^t log(pi / pi_k)]``; and the steps taken.

    Trajectories are sorted by length and run in blocks, so that short ones do not wait for long ones.
    """
    pairs = log_policy.size
    seed_key, key = jax.random.split(key)
    stream, uniform = streams(seed_key, pairs * trajectories)
    lengths = jnp.floor(jnp.log(uniform) / jnp.log(simulator.discount)).astype(int)
    order = _blocks(_by_length(lengths))
    horizons = jnp.where(order >= 0, lengths[order], -1).astype(jnp.int32)
    starts = jnp.where(order >= 0, order, 0) // trajectories
    block = functools.partial(_block, simulator, log_policy, log_policy - log_anchor)
    sums = jax.lax.map(lambda given: block(*given), (starts, horizons, stream[order], jax.random.split(key, BLOCKS)))
    flat = sums.reshape(-1, sums.shape[-1])
    totals = jnp.zeros((pairs, flat.shape[1])).at[starts.ravel()].add(flat)
    return (totals / trajectories).T.reshape(-1, *log_policy.shape), jnp.sum(lengths + 1)


def _by_length(lengths: Int[Array, " n"]) -> Int[Array, " n"]:
    """Indices, longest first: packed with the index into one integer they sort five times faster than by an argsort.

    Lengths that would not fit count as equal, which costs a little waiting and changes no estimate.
    """
    count = len(lengths)
    shown = jnp.minimum(lengths, LARGEST // count - 1).astype(jnp.int32)
    return jnp.sort(jnp.arange(count, dtype=jnp.int32) - shown * count) % count


def _blocks(order: Int[Array, " n"]) -> Int[Array, "b w"]:
    """Indices in rows of equal width, the last row filled up with -1."""
    width = -(-len(order) // BLOCKS)
    return jnp.concatenate([order, jnp.full(width * BLOCKS - len(order), -1)]).reshape(BLOCKS, width)


def _block(
    simulator: AbstractSimulator,
    log_policy: Float[AnyArray, "s a"],
    ratio: Float[AnyArray, "s a"],
    starts: Int[Array, " n"],
    horizons: Int[Array, " n"],
    stream: UInt[Array, " n"],
    key: PRNGKeyArray,
) -> Float[Array, "n k"]:
    """Run one block of trajectories to the end of its longest."""
    cumulative = jnp.cumsum(jnp.exp(log_policy), axis=1).astype(jnp.float32)
    count, flat_ratio = log_policy.shape[1], jnp.ravel(ratio)

    def step(lanes: _Lanes) -> _Lanes:
        move = jax.random.fold_in(key, lanes.time)
        stream, first, second = uniforms(lanes.stream)
        following, rewards = simulator.step(lanes.states, lanes.actions, first, move)
        here = jnp.where(lanes.time > 0, flat_ratio[lanes.states * count + lanes.actions], 0.0)
        running = (horizons >= lanes.time).astype(float)
        # Column by column: an array of k columns would be put together and taken apart at every step.
        met = (*(rewards[:, i] for i in range(rewards.shape[1])), here)
        totals = tuple(total + running * one for total, one in zip(lanes.totals, met, strict=True))
        return _Lanes(following, draw(cumulative[following], second), totals, lanes.time + 1, stream)

    states, actions = (starts // count).astype(jnp.int32), (starts % count).astype(jnp.int32)
    totals = tuple(jnp.zeros(len(starts)) for _ in range(len(simulator.names) + 1))
    lanes = _Lanes(states, actions, totals, jnp.zeros((), jnp.int32), stream)
    ended = jax.lax.while_loop(lambda lanes: jnp.max(horizons) >= lanes.time, step, lanes)
    return jnp.stack(ended.totals, axis=1)
