"""Pendulum-v1, identical to Gymnasium's step by step, with the motor's effort as second objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from .env import AbstractEnvironment, BoxActions, Objective, Objectives, Transition, named

__all__ = ["EFFORT_LIMITED", "Pendulum", "PendulumState"]

TIME_STEP = 0.05
GRAVITY = 10.0
MAX_SPEED = 8.0
MAX_TORQUE = 2.0


class PendulumState(NamedTuple):
    """Angle from upright, not wrapped, and its speed."""

    angle: Float[Array, ""]
    speed: Float[Array, ""]


def upright(t: Transition[PendulumState]) -> Float[Array, ""]:
    """Gymnasium's reward: ``-(angle^2 + .1 speed^2 + .001 torque^2)`` before the step, the angle wrapped."""
    angle = (t.state.angle + jnp.pi) % (2 * jnp.pi) - jnp.pi
    return -(angle**2 + 0.1 * t.state.speed**2 + 0.001 * _torque(t.action) ** 2)


def effort(t: Transition[PendulumState]) -> Float[Array, ""]:
    """The motor's effort, ``torque^2``."""
    return _torque(t.action) ** 2


EFFORT_LIMITED: Mapping[str, Objective] = {"upright": upright, "effort": effort}


class Pendulum(AbstractEnvironment[PendulumState]):
    """Pendulum-v1: one torque clipped to [-2, 2], three observations, episodes of 200 steps.

    Arguments: ``objectives``, by default ``upright`` (Gymnasium's reward) and ``effort`` (``torque^2``);
    ``time_limit`` in steps.
    """

    objectives: Objectives = eqx.field(static=True, converter=named, default=named(EFFORT_LIMITED))  # pyright: ignore
    time_limit: int = eqx.field(static=True, default=200)
    observation_size: ClassVar[int] = 3
    actions: ClassVar[BoxActions] = BoxActions(1, -MAX_TORQUE, MAX_TORQUE)

    def initial(self, key: PRNGKeyArray) -> PendulumState:
        """Any angle, a speed uniform on [-1, 1)."""
        angle, speed = jax.random.uniform(key, (2,), jnp.float32, -1, 1)
        return PendulumState(angle * jnp.pi, speed)

    def observe(self, physics: PendulumState) -> Float[Array, " o"]:
        """``(cos angle, sin angle, speed)``."""
        return jnp.stack([jnp.cos(physics.angle), jnp.sin(physics.angle), physics.speed])

    def advance(
        self, physics: PendulumState, action: Float[Array, " 1"], key: PRNGKeyArray
    ) -> tuple[PendulumState, Bool[Array, ""]]:
        """One semi-implicit Euler step; never ends."""
        push = 1.5 * GRAVITY * jnp.sin(physics.angle) + 3.0 * _torque(action).astype(physics.angle.dtype)
        speed = jnp.clip(physics.speed + push * TIME_STEP, -MAX_SPEED, MAX_SPEED)
        return PendulumState(physics.angle + speed * TIME_STEP, speed), jnp.zeros((), bool)


def _torque(action: Float[Array, " 1"]) -> Float[Array, ""]:
    return jnp.clip(action[0], -MAX_TORQUE, MAX_TORQUE)
