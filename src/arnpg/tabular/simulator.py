"""Generative models of tabular problems: give them states and actions, they give next states and rewards.

The paper's sample-based experiments (Section 5.2) assume one: independent trajectories can be started from any state
and action. A model given as arrays is one; so is a user's own vectorised function.
"""

import abc
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt

from arnpg.arrays import AnyArray, Scalar
from arnpg.errors import ModelError
from arnpg.tabular import checks
from arnpg.tabular.alias import alias_tables, draw_alias
from arnpg.tabular.mdp import MDP

__all__ = ["AbstractSimulator", "Simulator", "TableSimulator", "draw", "streams", "uniforms"]


GAMMA = 0x9E3779B97F4A7C15


class AbstractSimulator(eqx.Module):
    """States ``0..S-1``, actions ``0..A-1``, and a way to step many of them at once."""

    initial: eqx.AbstractVar[Float[AnyArray, " s"]]
    discount: eqx.AbstractVar[Scalar]
    actions: eqx.AbstractVar[int]
    names: eqx.AbstractVar[tuple[str, ...]]

    @abc.abstractmethod
    def step(
        self, states: Int[Array, " n"], actions: Int[Array, " n"], uniform: Float[Array, " n"], key: PRNGKeyArray
    ) -> tuple[Int[Array, " n"], Float[Array, "n m"]]:
        """Next states and rewards, independent from lane to lane.

        Randomness comes twice: one uniform number a lane, which is all that a table needs, and a key for the rest.
        """


class TableSimulator(AbstractSimulator):
    """A known model that is only sampled from: one uniform number a transition, by Walker's alias method."""

    initial: Float[AnyArray, " s"]
    discount: Scalar
    actions: int
    names: tuple[str, ...]
    keep: Float[AnyArray, "sa t"]
    alias: Int[AnyArray, "sa t"]
    rewards: Float[AnyArray, "sa m"]

    def __init__(self, mdp: MDP) -> None:
        """Alias tables of the transitions, and rewards with the objective last."""
        self.initial, self.discount, self.names = mdp.initial, mdp.discount, mdp.names
        self.actions = mdp.actions
        if not isinstance(mdp.transitions, np.ndarray):
            raise ModelError("a table to sample from must be dense; give a sparse model as a Simulator function.")
        self.keep, self.alias = alias_tables(mdp.transitions.reshape(-1, mdp.states))
        self.rewards = np.moveaxis(mdp.rewards, 0, 2).reshape(-1, mdp.objectives).copy()

    def step(
        self, states: Int[Array, " n"], actions: Int[Array, " n"], uniform: Float[Array, " n"], key: PRNGKeyArray
    ) -> tuple[Int[Array, " n"], Float[Array, "n m"]]:
        """``s' ~ P(. | s, a)`` and ``r_{1:m}(s, a)``."""
        del key
        pairs = states * self.actions + actions
        return draw_alias(self.keep, self.alias, pairs, uniform), jnp.asarray(self.rewards)[pairs]


class Simulator(AbstractSimulator):
    """A user's own simulator with integer states.

    Args:
        sample: ``sample(states (n,), actions (n,), key) -> (next states (n,), rewards (n, m))``, written with
            ``jax.numpy``.
        states: ``S``.
        actions: ``A``.
        names: the objectives' names, in the order of the rewards' last axis.
        discount: ``gamma``.
        initial: ``rho``, ``(S,)``; uniform where it is left out.
    """

    initial: Float[AnyArray, " s"]
    discount: Scalar
    actions: int
    names: tuple[str, ...]
    sample: Callable

    def __init__(
        self,
        sample: Callable,
        *,
        states: int,
        actions: int,
        names: Sequence[str],
        discount: float,
        initial: AnyArray | None = None,
    ) -> None:
        """Check the sizes, and what the function returns for two lanes."""
        for argument, count in (("states", states), ("actions", actions)):
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise ModelError(f"{argument} must be a whole number >= 1, got {count!r}.")
        self.sample, self.actions, self.names = sample, actions, checks.names(tuple(names))
        self.discount = checks.discount(discount, [])
        self.initial = checks.initial(initial, states, False)
        lanes = jax.ShapeDtypeStruct((2,), np.int32)
        key = jax.eval_shape(lambda: jax.random.key(0))
        try:
            following, rewards = jax.eval_shape(sample, lanes, lanes, key)
        except Exception as error:
            raise ModelError(f"sample failed on two lanes: {error}; it must be written with jax.numpy.") from error
        if following.shape != (2,) or rewards.shape != (2, len(self.names)):
            raise ModelError(
                f"sample must return next states (n,) and rewards (n, {len(self.names)}), got {following.shape} and "
                f"{rewards.shape} for n = 2."
            )

    def step(
        self, states: Int[Array, " n"], actions: Int[Array, " n"], uniform: Float[Array, " n"], key: PRNGKeyArray
    ) -> tuple[Int[Array, " n"], Float[Array, "n m"]]:
        """The user's function, its next states kept inside ``[0, S)``."""
        del uniform
        following, rewards = self.sample(states, actions, key)
        inside = jnp.clip(following, 0, len(self.initial) - 1).astype(states.dtype)
        return inside, jnp.asarray(rewards, float)


def draw(cumulative: Float[Array, "n k"], uniform: Float[Array, " n"]) -> Int[Array, " n"]:
    """An index for each row of cumulative probabilities, by its inverse."""
    index = jnp.sum(cumulative <= uniform[:, None], axis=1, dtype=jnp.int32)
    return jnp.minimum(index, cumulative.shape[1] - 1)


def streams(key: PRNGKeyArray, count: int) -> tuple[UInt[Array, " n"], Float[Array, " n"]]:
    """A generator for each of ``count`` lanes, and one uniform number in ``(0, 1]`` of 53 bits from each."""
    base = jax.random.bits(key, (2,), jnp.uint64)
    lanes = jnp.arange(count, dtype=jnp.uint64) * jnp.uint64(GAMMA)
    uniform = ((_mixed(base[0] + lanes) >> 11).astype(jnp.float64) + 1) * 2.0**-53
    return _mixed(base[1] + lanes), uniform


def uniforms(stream: UInt[Array, " n"]) -> tuple[UInt[Array, " n"], Float[Array, " n"], Float[Array, " n"]]:
    """The next state of each lane's generator, and two independent uniform numbers of 24 bits.

    SplitMix64 (Steele, Lea and Flood 2014), keyed by 128 bits of JAX's own generator: twelve times cheaper a step than
    a counter-based key, and one stream a trajectory is all that independence asks for.
    """
    stream = stream + jnp.uint64(GAMMA)
    mixed = _mixed(stream)
    return stream, _unit(mixed.astype(jnp.uint32)), _unit((mixed >> 32).astype(jnp.uint32))


def _mixed(bits: UInt[Array, " n"]) -> UInt[Array, " n"]:
    bits = (bits ^ (bits >> 30)) * jnp.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> 27)) * jnp.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> 31)


def _unit(bits: UInt[Array, " n"]) -> Float[Array, " n"]:
    """The upper 24 of 32 bits as a float32 in ``[0, 1)``."""
    return (bits >> 8).astype(jnp.float32) * jnp.float32(2**-24)
