"""CartPole-v1, identical to Gymnasium's step by step, with the cart's distance from the centre as second objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from .env import AbstractEnvironment, DiscreteActions, Objective, Objectives, Transition, named, uniform

__all__ = ["POSITION_LIMITED", "CartPole", "CartPoleState"]

TIME_STEP = 0.02
GRAVITY = 9.8
CART, POLE, HALF_LENGTH = 1.0, 0.1, 0.5
FORCE = 10.0
MAX_POSITION = 2.4
MAX_ANGLE = 12 * 2 * jnp.pi / 360


class CartPoleState(NamedTuple):
    """Position and speed of the cart, angle of the pole from upright and its speed."""

    position: Float[Array, ""]
    speed: Float[Array, ""]
    angle: Float[Array, ""]
    turning: Float[Array, ""]


def upright(t: Transition[CartPoleState]) -> Float[Array, ""]:
    """Gymnasium's reward: 1 a step."""
    return jnp.ones_like(t.state.position)


def distance(t: Transition[CartPoleState]) -> Float[Array, ""]:
    """Distance of the cart from the centre after the step."""
    return jnp.abs(t.next_state.position)


POSITION_LIMITED: Mapping[str, Objective] = {"upright": upright, "distance": distance}


class CartPole(AbstractEnvironment[CartPoleState]):
    """CartPole-v1: push left (0) or right (1), four observations, episodes of at most 500 steps.

    Arguments: ``objectives``, by default ``upright`` (1 a step) and ``distance`` (of the cart from the centre);
    ``time_limit`` in steps.
    """

    objectives: Objectives = eqx.field(static=True, converter=named, default=named(POSITION_LIMITED))  # pyright: ignore
    time_limit: int = eqx.field(static=True, default=500)
    observation_size: ClassVar[int] = 4
    actions: ClassVar[DiscreteActions] = DiscreteActions(2)

    def initial(self, key: PRNGKeyArray) -> CartPoleState:
        """Almost upright and still: four numbers uniform on [-0.05, 0.05)."""
        return CartPoleState(*uniform(key, 4, -0.05, 0.05))

    def observe(self, physics: CartPoleState) -> Float[Array, " o"]:
        """The state itself."""
        return jnp.stack(physics)

    def advance(
        self, physics: CartPoleState, action: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[CartPoleState, Bool[Array, ""]]:
        """One explicit Euler step; ends with the cart off the track or the pole beyond 12 degrees."""
        x, v, angle, turning = physics
        force = (2 * action - 1).astype(x.dtype) * FORCE
        cosine, sine = jnp.cos(angle), jnp.sin(angle)
        total, lever = CART + POLE, POLE * HALF_LENGTH
        push = (force + lever * turning**2 * sine) / total
        spin = (GRAVITY * sine - cosine * push) / (HALF_LENGTH * (4 / 3 - POLE * cosine**2 / total))
        pull = push - lever * spin * cosine / total
        state = CartPoleState(
            x + TIME_STEP * v, v + TIME_STEP * pull, angle + TIME_STEP * turning, turning + TIME_STEP * spin
        )
        return state, (jnp.abs(state.position) > MAX_POSITION) | (jnp.abs(state.angle) > MAX_ANGLE)
