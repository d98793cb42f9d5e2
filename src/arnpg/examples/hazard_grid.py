"""A robot on a square field delivers to two kinds of stations, and should keep out of hazards.

A state is a cell, ``(row, column)``. The robot drives north, east, south or west and slips to either side with
probability ``slip``; at the border it stays. A fiftieth of the cells are stations of the first kind, a fiftieth of the
second, a fifth is hazardous, all drawn from a seed.

Four objectives, discounted sums: ``first`` and ``second`` (steps spent at stations of each kind), ``hazard`` (steps
spent in hazardous cells) and ``energy`` (north and south are twice as steep).
"""

from __future__ import annotations

import numpy as np

from arnpg.examples.sizes import side
from arnpg.tabular.lattice import Outcomes
from arnpg.tabular.mdp import MDP

__all__ = ["hazard_grid"]

HEADINGS = ((-1, 0), (0, 1), (1, 0), (0, -1))


def hazard_grid(states: int = 1000, slip: float = 0.1, discount: float = 0.99, seed: int = 0) -> MDP:
    """The field with about ``states`` states (a square) and 4 actions, started anywhere.

    Args:
        states: how many, to the nearest square.
        slip: the probability of slipping to each side.
        discount: of one step.
        seed: of the stations and the hazards.
    """
    size = side(states, 2)
    draws = np.random.default_rng(seed).random((3, size * size))
    first, second, hazard = draws[0] < 0.02, draws[1] < 0.02, draws[2] < 0.2

    def drive(cell: tuple[np.ndarray, ...], action: int) -> Outcomes:
        moves = []
        for turn, chance in ((0, 1 - 2 * slip), (1, slip), (3, slip)):
            down, right = HEADINGS[(action + turn) % 4]
            target = np.clip(cell[0] + down, 0, size - 1), np.clip(cell[1] + right, 0, size - 1)
            moves.append((chance, target))
        rewards = {"first": first, "second": second, "hazard": hazard, "energy": 1.0 if action % 2 == 0 else 0.5}
        return Outcomes(moves, rewards)

    return MDP.from_lattice((size, size), 4, drive, discount=discount)
