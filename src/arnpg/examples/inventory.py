"""Two products on one shelf budget: what to reorder when unmet demand is lost.

A state is the stock of each product, ``(x1, x2)``. Each day the shop orders a lot of one product, or nothing; it
arrives at once, as far as there is room. Then each product is asked for 0, 1 or 2 times, and what is not in stock is
lost.

Three objectives, scaled by ``1 - discount`` so that values read as averages a day: ``cost`` (a fee for each order and
holding for each unit), ``lost 1`` and ``lost 2`` (unmet demand). A service level is a limit on what is lost:
``at_most={"lost 1": 0.02 * 1.0}`` serves 98 % of a mean demand of 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from arnpg.examples.sizes import side
from arnpg.tabular.lattice import Outcomes
from arnpg.tabular.mdp import MDP

__all__ = ["inventory"]


def inventory(
    states: int = 1000,
    demand: Sequence[Sequence[float]] = ((0.3, 0.4, 0.3), (0.5, 0.3, 0.2)),
    fee: float = 5.0,
    holding: float = 0.1,
    discount: float = 0.99,
) -> MDP:
    """The shop with about ``states`` states (a square) and 3 actions, started half full.

    Args:
        states: how many, to the nearest square.
        demand: for each product the probabilities of being asked for 0, 1, 2 units.
        fee: of an order.
        holding: of a unit, each day.
        discount: of one day.
    """
    size = side(states, 2)
    lot = max(2, min(size // 4, 20))

    def day(stock: tuple[np.ndarray, ...], action: int) -> Outcomes:
        full = tuple(np.minimum(level + lot * (action == own + 1), size - 1) for own, level in enumerate(stock))
        moves = [
            (demand[0][first] * demand[1][second], (np.maximum(full[0] - first, 0), np.maximum(full[1] - second, 0)))
            for first in range(3)
            for second in range(3)
        ]
        rewards: dict[str, Any] = {"cost": (1 - discount) * (fee * (action > 0) + holding * (full[0] + full[1]))}
        for own in range(2):
            unmet = sum(demand[own][asked] * np.maximum(asked - full[own], 0) for asked in range(3))
            rewards[f"lost {own + 1}"] = (1 - discount) * unmet
        return Outcomes(moves, rewards)

    return MDP.from_lattice((size, size), 3, day, discount=discount, start=(size // 2, size // 2))
