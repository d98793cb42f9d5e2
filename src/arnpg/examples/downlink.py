"""A solar-powered base station sends to two users over fading channels: whom to serve, and how loud.

A state is the channel quality of each user and the charge of the battery, ``(c1, c2, e)``. In each step one thing
changes: a channel gets a little better or worse, or the sun adds a unit of charge. Sending costs one unit at low power
and two at high power; the rate is ``log2(1 + power * quality)``.

Two objectives, ``rate 1`` and ``rate 2``, scaled by ``1 - discount`` so that values read as averages a step.
``arnpg.ProportionalFair()`` shares the station fairly although the second user's channel is worse.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from arnpg.examples.sizes import side
from arnpg.tabular.lattice import Outcomes
from arnpg.tabular.mdp import MDP

__all__ = ["downlink"]

SILENT = 0
SENDS = ((0, 1), (1, 1), (0, 2), (1, 2))  # user and power of the actions 1 ... 4


def downlink(
    states: int = 1000, sun: float = 0.5, reach: tuple[float, float] = (8.0, 3.0), discount: float = 0.99
) -> MDP:
    """The station with about ``states`` states (a cube) and 5 actions, started in the middle of everything.

    Args:
        states: how many, to the nearest cube.
        sun: the probability that a unit of charge arrives in a step.
        reach: the signal-to-noise ratio of each user's best channel at unit power.
        discount: of one step.
    """
    levels = side(states, 3)
    fade = (1 - sun) / 4

    def step(state: tuple[np.ndarray, ...], action: int) -> Outcomes:
        first, second, charge = state
        user, power = SENDS[action - 1] if action != SILENT else (0, 0)
        possible = charge >= power
        left = np.where(possible, charge - power, 0)
        ends = [(first + 1, second), (first - 1, second), (first, second + 1), (first, second - 1)]
        inside = [(a >= 0) & (a < levels) & (b >= 0) & (b < levels) for a, b in ends]
        moves: list[Any] = [(fade * ok, (a, b, left)) for (a, b), ok in zip(ends, inside, strict=True)]
        moves.append((sun, (first, second, np.minimum(left + 1, levels - 1))))
        moves.append((np.maximum(1 - sun - fade * sum(ok.astype(float) for ok in inside), 0.0), (first, second, left)))
        quality = reach[user] * (state[user] + 1) / levels
        rate = (1 - discount) * np.log2(1 + power * quality)
        rewards = {f"rate {own + 1}": rate * (own == user) for own in range(2)}
        return Outcomes(moves, rewards, possible)

    return MDP.from_lattice((levels,) * 3, 5, step, discount=discount, start=(levels // 2,) * 3)
