"""A ward with beds for two classes of patients: whom to admit so that neither class is neglected.

A state is how many patients of each class are in, ``(n1, n2)``. In each step one thing happens: a patient of a class
arrives, and is admitted or sent elsewhere, or a patient leaves. The second class stays three times as long, so beds
given to it are gone for long. The action says whose arrivals are admitted: both, class 1, class 2, nobody; where all
beds are taken only the last is allowed.

Two objectives, ``admitted 1`` and ``admitted 2``: the share of each class's arrivals that is admitted, as a discounted
average. ``arnpg.MaxMin()`` makes the lesser of the two as large as possible.
"""

from __future__ import annotations

import numpy as np

from arnpg.examples.sizes import side
from arnpg.tabular.lattice import Outcomes
from arnpg.tabular.mdp import MDP

__all__ = ["hospital_ward"]

BOTH, NOBODY = 0, 3


def hospital_ward(
    states: int = 1000, load: float = 1.3, stay: tuple[float, float] = (1.0, 3.0), discount: float = 0.99
) -> MDP:
    """The ward with about ``states`` states (a square) and 4 actions; at first each class has 45 % of the beds.

    Args:
        states: how many, to the nearest square; the number of beds is one less than its side.
        load: the beds that all arrivals would need, as a share of the beds there are; each class asks for half.
        stay: how long each class stays.
        discount: of one step.
    """
    beds = side(states, 2) - 1
    arrivals = [0.5 * load * beds / length for length in stay]
    clock = sum(arrivals) + beds / min(stay)

    def step(present: tuple[np.ndarray, ...], action: int) -> Outcomes:
        taken = present[0] + present[1]
        moves, rewards = [], {}
        for own in range(2):
            enters = (taken < beds) * (action in (BOTH, own + 1)) * arrivals[own] / clock
            moves.append((enters, (present[0] + (own == 0), present[1] + (own == 1))))
            rewards[f"admitted {own + 1}"] = (1 - discount) * enters * clock / arrivals[own]
        leaves = [np.where(taken > beds, 0.5, present[own] / stay[own] / clock) for own in range(2)]
        leaves = [np.where(present[own] > 0, leaves[own], 0.0) for own in range(2)]
        moves += [(leaves[0], (present[0] - 1, present[1])), (leaves[1], (present[0], present[1] - 1))]
        rest = 1 - sum(chance for chance, _ in moves)
        return Outcomes([*moves, (np.maximum(rest, 0.0), present)], rewards, (taken < beds) | (action == NOBODY))

    half = int(0.45 * beds)
    return MDP.from_lattice((beds + 1, beds + 1), 4, step, discount=discount, start=(half, half))
