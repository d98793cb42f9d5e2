"""Two classes of customers share one server: whom to serve, slot by slot.

A state is how many of each class are present, ``(n1, n2)`` with ``n <= buffer``; index ``n1 * (buffer + 1) + n2``. In
each slot the server works for class 1, for class 2, or for nobody, and completes with that class's probability; then
each class may gain a customer, who is lost where the buffer is full.

Four objectives, scaled by ``1 - discount`` so that values read as averages per slot:

    served 1, served 2      completions per slot: the throughput of each class
    waiting 1, waiting 2    customers present; by Little's law  mean delay = waiting / served  (in slots)

So a limit on a class's delay is a limit on its customers present, and a price tells what a lower one would cost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from arnpg.errors import ModelError
from arnpg.tabular.mdp import MDP

__all__ = ["SERVE_NOBODY", "two_class_queue"]

SERVE_FIRST, SERVE_SECOND, SERVE_NOBODY = 0, 1, 2


def two_class_queue(
    arrivals: Sequence[float] = (0.35, 0.25),
    service: Sequence[float] = (0.6, 0.5),
    buffer: int = 8,
    discount: float = 0.99,
) -> MDP:
    """The queue as a model with ``(buffer + 1)^2`` states and 3 actions, started empty.

    Args:
        arrivals: the probability that a customer of each class arrives in a slot.
        service: the probability that a service of each class is completed in a slot.
        buffer: how many customers of each class there is room for.
        discount: close to 1 for long-run averages.
    """
    _check(arrivals, service, buffer)
    width = buffer + 1
    transitions = np.zeros((width * width, 3, width * width))
    rewards = np.zeros((4, width * width, 3))
    for first in range(width):
        for second in range(width):
            state = first * width + second
            rewards[2:, state] = [[first], [second]]
            for action in (SERVE_FIRST, SERVE_SECOND, SERVE_NOBODY):
                done = _completion((first, second), action, service)
                rewards[:2, state, action] = done
                for chance, left in _after_service((first, second), done):
                    transitions[state, action] += chance * _after_arrivals(left, arrivals, width)
    names = ("served 1", "served 2", "waiting 1", "waiting 2")
    start = np.eye(width * width)[0]
    return MDP(transitions, (1 - discount) * rewards, discount=discount, initial=start, names=names)


def _completion(present: tuple[int, int], action: int, service: Sequence[float]) -> tuple[float, float]:
    """The probability that a customer of each class leaves in this slot."""
    works = [action == own and present[own] > 0 for own in (SERVE_FIRST, SERVE_SECOND)]
    return works[0] * service[0], works[1] * service[1]


def _after_service(present: tuple[int, int], done: tuple[float, float]) -> list[tuple[float, tuple[int, int]]]:
    """Who is left after the service, with probabilities; at most one class is served."""
    first, second = present
    return [
        (done[0], (first - 1, second)),
        (done[1], (first, second - 1)),
        (1 - done[0] - done[1], present),
    ]


def _after_arrivals(present: tuple[int, int], arrivals: Sequence[float], width: int) -> np.ndarray:
    """The distribution of the next state."""
    each = []
    for count, arrival in zip(present, arrivals, strict=True):
        following = np.zeros(width)
        following[count] += 1 - arrival
        following[min(count + 1, width - 1)] += arrival
        each.append(following)
    return np.outer(each[0], each[1]).ravel()


def _check(arrivals: Sequence[float], service: Sequence[float], buffer: int) -> None:
    for name, pair in (("arrivals", arrivals), ("service", service)):
        if len(pair) != 2 or not all(0 <= chance <= 1 for chance in pair):
            raise ModelError(f"{name} must be two probabilities, one for each class, got {pair}.")
    if isinstance(buffer, bool) or not isinstance(buffer, int) or buffer < 1:
        raise ModelError(f"buffer must be a whole number >= 1, got {buffer!r}.")
