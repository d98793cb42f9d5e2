"""Environments that live on the device: pure functions, named objectives, terminated and truncated apart.

An environment states its physics (``initial``, ``observe``, ``advance``) and its objectives, functions of one
transition; ``reset`` and ``step`` add the time limit and the reward vector ``r_1..m(s_t, a_t)`` of Section 2.
Every objective is
returned as it is named: a cost is a positive number here, and it is the criterion that turns it round.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from arnpg.errors import SettingsError

__all__ = [
    "AbstractEnvironment",
    "BoxActions",
    "DiscreteActions",
    "EnvState",
    "Objective",
    "Objectives",
    "Step",
    "Transition",
    "named",
]

Physics = TypeVar("Physics", bound=PyTree)


class DiscreteActions(eqx.Module):
    """Actions ``0 .. count - 1``."""

    count: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.count < 1:
            raise SettingsError(f"count must be at least 1, got {self.count}; state the number of actions.")


class BoxActions(eqx.Module):
    """Real actions of ``size`` components; the environment itself clips them to ``[low, high]``."""

    size: int = eqx.field(static=True)
    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.size < 1:
            raise SettingsError(f"size must be at least 1, got {self.size}; state the number of action components.")
        if not self.low < self.high:
            raise SettingsError(f"low must be below high, got low={self.low} and high={self.high}; swap them.")


class Transition(eqx.Module, Generic[Physics]):
    """What an objective may look at: one step, both ends of it in physical and in observed form."""

    state: Physics
    observation: Float[Array, " o"]
    action: Array
    next_state: Physics
    next_observation: Float[Array, " o"]
    terminated: Bool[Array, ""]


Objective = Callable[[Transition], Array]
Objectives = tuple[tuple[str, Objective], ...]


def named(objectives: Mapping[str, Objective] | Objectives) -> Objectives:
    """Objectives as hashable (name, function) pairs, in the order given; refuses an empty collection."""
    pairs = tuple(objectives.items()) if isinstance(objectives, Mapping) else tuple(objectives)
    if not pairs:
        raise SettingsError("objectives must not be empty; give at least one name and a function of the transition.")
    for name, function in pairs:
        if not callable(function):
            raise TypeError(f"objectives[{name!r}] must be a function of the transition, got {function!r}.")
    return pairs


class EnvState(eqx.Module, Generic[Physics]):
    """The physical state, what is seen of it, and the number of steps since the reset."""

    physics: Physics
    observation: Float[Array, " o"]
    elapsed: Int[Array, ""]


class Step(eqx.Module, Generic[Physics]):
    """What ``step`` returns; the state is the one after the step, before any reset."""

    state: EnvState[Physics]
    rewards: Float[Array, " m"]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


class AbstractEnvironment(eqx.Module, Generic[Physics]):
    """A Markov decision process as pure functions of one state; batches are ``jax.vmap``.

    Fields of a subclass: ``objectives``, pairs of name and function of a ``Transition`` (see ``named``), and
    ``time_limit``, the number of steps after which an episode is truncated.  ``totals`` says what a value is where a
    training does not: the total of an ``"episode"``, or of a whole ``"path"`` of the batch, resets included.
    """

    objectives: eqx.AbstractVar[Objectives]
    time_limit: eqx.AbstractVar[int]
    observation_size: eqx.AbstractClassVar[int]
    actions: eqx.AbstractClassVar[DiscreteActions | BoxActions]
    totals: ClassVar[str] = "episode"

    @abc.abstractmethod
    def initial(self, key: PRNGKeyArray) -> Physics:
        """A physical state drawn from the initial distribution rho, in float32."""

    @abc.abstractmethod
    def observe(self, physics: Physics) -> Float[Array, " o"]:
        """What the policy sees of a physical state."""

    @abc.abstractmethod
    def advance(self, physics: Physics, action: Array, key: PRNGKeyArray) -> tuple[Physics, Bool[Array, ""]]:
        """The next physical state, in the dtype of the present one, and whether it ends the episode."""

    @property
    def names(self) -> tuple[str, ...]:
        """The objectives' names, in the order of the reward vector."""
        return tuple(name for name, _ in self.objectives)

    def reset(self, key: PRNGKeyArray) -> EnvState[Physics]:
        """Start an episode."""
        physics = self.initial(key)
        return EnvState(physics, self.observe(physics), jnp.zeros((), jnp.int32))

    def step(self, state: EnvState[Physics], action: Array, key: PRNGKeyArray) -> Step[Physics]:
        """One step with the reward vector; both flags may be true, and neither resets anything."""
        next_physics, terminated = self.advance(state.physics, action, key)
        after = self.observe(next_physics)
        transition = Transition(state.physics, state.observation, action, next_physics, after, terminated)
        rewards = jnp.stack([jnp.asarray(f(transition), after.dtype) for _, f in self.objectives])
        elapsed = state.elapsed + 1
        return Step(EnvState(next_physics, after, elapsed), rewards, terminated, elapsed >= self.time_limit)


def uniform(key: PRNGKeyArray, size: int, low: float, high: float) -> tuple[Any, ...]:
    """``size`` independent float32 scalars, uniform on ``[low, high)``."""
    return tuple(jax.random.uniform(key, (size,), jnp.float32, low, high))
