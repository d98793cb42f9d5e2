"""Acrobot-v1, identical to Gymnasium's step by step, with the objectives of the paper's experiments (Section 5.3).

A two-link pendulum with a motor in its elbow (Sutton and Barto's dynamics), integrated by one Runge-Kutta step of
order 4 over 0.2 s.  ``CONSTRAINED`` are the reward and the two costs of the constrained experiment, ``TWO_REWARDS`` the
rewards of the proportional-fairness experiment (Appendix, smooth concave scalarisation).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from .env import AbstractEnvironment, DiscreteActions, Objective, Objectives, Transition, named, uniform

__all__ = ["CONSTRAINED", "TWO_REWARDS", "Acrobot", "AcrobotState", "tip_height"]

TIME_STEP = 0.2
MAX_SPEEDS = (4 * jnp.pi, 9 * jnp.pi)
GRAVITY = 9.8
MASS, LENGTH, CENTRE, INERTIA = 1.0, 1.0, 0.5, 1.0


class AcrobotState(NamedTuple):
    """Angle of the upper link from straight down, of the lower link relative to it, and both speeds."""

    theta1: Float[Array, ""]
    theta2: Float[Array, ""]
    speed1: Float[Array, ""]
    speed2: Float[Array, ""]


def tip_height(observation: Float[Array, " 6"]) -> Float[Array, ""]:
    """Height of the tip over the axle, ``-cos(theta1) - cos(theta1 + theta2)``, read from an observation."""
    cos1, sin1, cos2, sin2 = observation[:4]
    return -cos1 - (cos1 * cos2 - sin1 * sin2)


def height(t: Transition[AcrobotState]) -> Bool[Array, ""]:
    """The constrained experiment's reward: 1 where the tip is above -0.5 before the step."""
    return tip_height(t.observation) > -0.5


def swing1(t: Transition[AcrobotState]) -> Bool[Array, ""]:
    """Cost I: 1 where the upper link turns backwards and the action's index is not 0 (torque 0 or +1)."""
    return (t.state.speed1 < 0) & (t.action != 0)


def swing2(t: Transition[AcrobotState]) -> Bool[Array, ""]:
    """Cost II: the same test with the speed of the lower link."""
    return (t.state.speed2 < 0) & (t.action != 0)


def high(t: Transition[AcrobotState]) -> Bool[Array, ""]:
    """Reward I of the fairness experiment: 1 where the tip is above 0.5 before the step."""
    return tip_height(t.observation) > 0.5


def level(t: Transition[AcrobotState]) -> Bool[Array, ""]:
    """Reward II of the fairness experiment: 1 where the tip is between 0 and 0.1 before the step."""
    tip = tip_height(t.observation)
    return (tip > 0) & (tip < 0.1)


CONSTRAINED: Mapping[str, Objective] = {"height": height, "swing1": swing1, "swing2": swing2}
TWO_REWARDS: Mapping[str, Objective] = {"high": high, "level": level}


class Acrobot(AbstractEnvironment[AcrobotState]):
    """Acrobot-v1: three actions (torque -1, 0, +1), six observations, episodes of at most 500 steps.

    Arguments: ``objectives``, by default the three of the paper's constrained experiment; ``time_limit`` in steps.
    """

    objectives: Objectives = eqx.field(static=True, converter=named, default=named(CONSTRAINED))  # pyright: ignore
    time_limit: int = eqx.field(static=True, default=500)
    observation_size: ClassVar[int] = 6
    actions: ClassVar[DiscreteActions] = DiscreteActions(3)
    totals: ClassVar[str] = "path"  # the paper's limits are on paths of 500 steps

    def initial(self, key: PRNGKeyArray) -> AcrobotState:
        """Hanging almost still: four numbers uniform on [-0.1, 0.1)."""
        return AcrobotState(*uniform(key, 4, -0.1, 0.1))

    def observe(self, physics: AcrobotState) -> Float[Array, " o"]:
        """``(cos theta1, sin theta1, cos theta2, sin theta2, speed1, speed2)``."""
        a, b, v, w = physics
        return jnp.stack([jnp.cos(a), jnp.sin(a), jnp.cos(b), jnp.sin(b), v, w])

    def advance(
        self, physics: AcrobotState, action: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[AcrobotState, Bool[Array, ""]]:
        """One Runge-Kutta step, angles wrapped and speeds bounded; ends with the tip above 1."""
        torque = action.astype(physics.theta1.dtype) - 1
        a, b, v, w = _runge_kutta(physics, torque)
        state = AcrobotState(
            _wrap(a), _wrap(b), jnp.clip(v, -MAX_SPEEDS[0], MAX_SPEEDS[0]), jnp.clip(w, -MAX_SPEEDS[1], MAX_SPEEDS[1])
        )
        return state, -jnp.cos(state.theta1) - jnp.cos(state.theta1 + state.theta2) > 1.0


def _runge_kutta(state: AcrobotState, torque: Float[Array, ""]) -> AcrobotState:
    def moved(by: float, slope: AcrobotState) -> AcrobotState:
        return AcrobotState(*(x + by * dx for x, dx in zip(state, slope, strict=True)))

    k1 = _derivative(state, torque)
    k2 = _derivative(moved(TIME_STEP / 2, k1), torque)
    k3 = _derivative(moved(TIME_STEP / 2, k2), torque)
    k4 = _derivative(moved(TIME_STEP, k3), torque)
    return moved(
        TIME_STEP / 6, AcrobotState(*(p + 2 * q + 2 * r + s for p, q, r, s in zip(k1, k2, k3, k4, strict=True)))
    )


def _derivative(state: AcrobotState, torque: Float[Array, ""]) -> AcrobotState:
    """Time derivative of the state: Sutton and Barto's equations, ``cos(x - pi/2)`` written as ``sin(x)``."""
    theta1, theta2, speed1, speed2 = state
    cos2, sin2 = jnp.cos(theta2), jnp.sin(theta2)
    arm = MASS * LENGTH * CENTRE
    d1 = MASS * CENTRE**2 + MASS * (LENGTH**2 + CENTRE**2) + 2 * arm * cos2 + 2 * INERTIA
    d2 = MASS * CENTRE**2 + arm * cos2 + INERTIA
    phi2 = MASS * CENTRE * GRAVITY * jnp.sin(theta1 + theta2)
    phi1 = (
        -arm * speed2**2 * sin2
        - 2 * arm * speed2 * speed1 * sin2
        + (MASS * CENTRE + MASS * LENGTH) * GRAVITY * jnp.sin(theta1)
        + phi2
    )
    ratio = d2 / d1
    bend = (torque + ratio * phi1 - arm * speed1**2 * sin2 - phi2) / (MASS * CENTRE**2 + INERTIA - d2 * ratio)
    return AcrobotState(speed1, speed2, -(d2 * bend + phi1) / d1, bend)


def _wrap(angle: Float[Array, ""]) -> Float[Array, ""]:
    """The angle moved by whole turns into [-pi, pi], untouched where it is there already."""
    turns = jnp.maximum(jnp.ceil((jnp.abs(angle) - jnp.pi) / (2 * jnp.pi)), 0)
    return angle - jnp.sign(angle) * turns * (2 * jnp.pi)
