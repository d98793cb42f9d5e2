"""Whether an environment goes the same way twice: the same random actions, the same seed."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from arnpg.errors import ArnpgError

from .env import DiscreteActions
from .gymnasium_host import GymnasiumEnvironment
from .host import AbstractHostBatch, AbstractHostEnvironment, HostStep

__all__ = ["CURE", "Path", "first_difference", "play", "random_actions", "seed_forgotten"]

CURE = (
    "Draw all randomness from self.np_random, which reset(seed=seed) seeds, and keep nothing from earlier episodes."
)
COUNT, STEPS = 2, 50  # of the look before training: little beside one batch


class Path(NamedTuple):
    """First observations, and the steps from there on."""

    first: np.ndarray
    steps: list[HostStep]


def seed_forgotten(host: AbstractHostEnvironment) -> str | None:
    """Where two short paths under one seed part, in words; none where they are equal, as far as they go.

    The second is played in the environments of the first, as training does. A fault ends the look: it is for training,
    or for ``check_environment``, to tell.
    """
    if isinstance(host, GymnasiumEnvironment):
        host = dataclasses.replace(host, workers=min(host.workers, 1))
    actions = random_actions(host, COUNT, STEPS, 0)
    try:
        with host.open(COUNT, 0) as batch:
            once, twice = play(batch, actions, 0), play(batch, actions, 0)
            return None if batch.faults else first_difference(once, twice)
    except ArnpgError:
        return None


def play(batch: AbstractHostBatch, actions: np.ndarray, seed: int) -> Path:
    """From a seeded reset, up to the first episode that is lost."""
    path = Path(batch.reset(seed), [])
    for action in actions:
        if batch.faults:
            break
        path.steps.append(batch.step(action))
    return path


def random_actions(host: AbstractHostEnvironment, count: int, steps: int, seed: int) -> np.ndarray:
    """Uniform ones, ``(steps, count, ...)``; those of a box reach its corners now and then."""
    draws = np.random.default_rng(seed)
    if isinstance(host.actions, DiscreteActions):
        return draws.integers(host.actions.count, size=(steps, count))
    box = host.actions
    low = box.low if np.isfinite(box.low) else min(-1.0, box.high - 2)
    high = box.high if np.isfinite(box.high) else max(1.0, low + 2)
    drawn = draws.uniform(low, high, (steps, count, box.size))
    corners = np.where(draws.uniform(size=drawn.shape) < 0.5, low, high)
    return np.where(draws.uniform(size=(steps, 1, 1)) < 0.1, corners, drawn)


def first_difference(a: Path, b: Path) -> str | None:
    """Where two paths part, as far as both go."""
    if not np.array_equal(a.first, b.first):
        return "the first observation differs"
    for number, (one, two) in enumerate(zip(a.steps, b.steps, strict=False), start=1):
        for name, x, y in zip(one._fields[:-1], one[:-1], two[:-1], strict=False):
            if not np.array_equal(x, y):
                return f"{name.replace('_', ' ')} differ in step {number}"
    return None
