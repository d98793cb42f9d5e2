"""Three classes of customers, one server: whom to admit and whom to serve, event by event.

A state is how many of each class are present, ``(n1, n2, n3)`` with ``n < room``. One event happens in each step: a
customer arrives, or the service at hand ends, or nothing does (uniformisation of a continuous-time queue). The action
says which class the server works for and whether customers of the first class, who come most often, are let in.

Four objectives, scaled by ``1 - discount`` so that values read as averages a step: ``served 1``, ``served 2``,
``served 3`` (completions) and ``waiting`` (customers present, of all classes).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from arnpg.examples.sizes import side
from arnpg.tabular.lattice import Outcomes
from arnpg.tabular.mdp import MDP

__all__ = ["multiclass_queue"]

CLASSES = 3


def multiclass_queue(
    states: int = 1000,
    arrivals: Sequence[float] = (0.25, 0.2, 0.15),
    service: Sequence[float] = (0.6, 0.5, 0.45),
    discount: float = 0.99,
) -> MDP:
    """The queue with about ``states`` states (a cube) and 6 actions, started empty.

    Args:
        states: how many, to the nearest cube.
        arrivals: the rate at which each class arrives.
        service: the rate at which each class is served.
        discount: of one event.
    """
    room = side(states, CLASSES)
    clock = sum(arrivals) + max(service)

    def event(present: tuple[np.ndarray, ...], action: int) -> Outcomes:
        works, closed = action % CLASSES, action >= CLASSES
        moves = []
        for own in range(CLASSES):
            enters = (present[own] < room - 1) & ~(closed and own == 0)
            moves.append((enters * arrivals[own] / clock, _changed(present, own, 1)))
        done = (present[works] > 0) * service[works] / clock
        moves.append((done, _changed(present, works, -1)))
        stay = 1 - sum(chance for chance, _ in moves)
        rewards: dict[str, Any] = {f"served {own + 1}": done * (own == works) for own in range(CLASSES)}
        rewards["waiting"] = sum(present)
        rewards = {name: (1 - discount) * reward for name, reward in rewards.items()}
        return Outcomes([*moves, (np.maximum(stay, 0.0), present)], rewards)

    return MDP.from_lattice((room,) * CLASSES, 2 * CLASSES, event, discount=discount, start=(0,) * CLASSES)


def _changed(present: tuple[np.ndarray, ...], own: int, step: int) -> tuple[np.ndarray, ...]:
    """One customer of a class more or fewer."""
    return tuple(count + step * (index == own) for index, count in enumerate(present))
