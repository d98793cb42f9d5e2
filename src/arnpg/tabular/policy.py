"""A stationary policy on integer states, as a table that acts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from arnpg.errors import SettingsError
from arnpg.tabular.kernel import AbstractKernel, Point, Policy

__all__ = ["TabularPolicy", "mix"]


@final
class TabularPolicy:
    """``pi(a | s)`` as an array ``(S, A)``.

    Calling it with a state, or an array of states, gives actions: sampled with a generator, the most probable without.
    """

    def __init__(self, probabilities: np.ndarray) -> None:
        """Keep a read-only copy of rows that sum to one."""
        table = np.array(probabilities, dtype=np.float64)
        if table.ndim != 2 or not np.isfinite(table).all() or (table < 0).any():
            raise SettingsError(f"probabilities must be a finite (S, A) array >= 0, got shape {table.shape}.")
        sums = table.sum(axis=1, keepdims=True)
        if np.abs(sums - 1).max() > 1e-6:
            raise SettingsError(f"probabilities[{int(np.abs(sums - 1).argmax())}] must sum to 1; normalise the rows.")
        self.probabilities = table / sums
        self.probabilities.flags.writeable = False

    def __call__(self, state: int | np.ndarray, generator: np.random.Generator | None = None) -> int | np.ndarray:
        """The action in a state, or one for each of an array of states."""
        states = np.asarray(state)
        if states.dtype.kind not in "iu" or (states < 0).any() or (states >= len(self.probabilities)).any():
            raise SettingsError(f"state must be an integer in [0, {len(self.probabilities)}), got {state!r}.")
        rows = self.probabilities[states]
        if generator is None:
            actions = rows.argmax(axis=-1)
        else:
            below = rows.cumsum(axis=-1) <= generator.random((*states.shape, 1))
            actions = np.minimum(below.sum(axis=-1), rows.shape[-1] - 1)
        return int(actions) if states.ndim == 0 else actions

    def __repr__(self) -> str:
        """The size, and in how many states it randomises."""
        random = int((self.probabilities.max(axis=1) < 1 - 1e-9).sum())
        states, actions = self.probabilities.shape
        return f"TabularPolicy(states={states}, actions={actions}, randomises in {random})"


def mix(kernel: AbstractKernel, points: Sequence[Point], weights: np.ndarray) -> Point:
    """The stationary policy whose values are the weighted mean of the points' values.

    Occupancies are averaged, ``d(s, a) = sum_j w_j d_j(s) pi_j(a | s)``, and normalised per state. Where no policy
    ever goes, actions are those of the point with the largest weight.
    """
    joint = np.zeros((kernel.mdp.states, kernel.mdp.actions))
    for point, weight in zip(points, weights, strict=True):
        _add(joint, weight * kernel.occupancy(point), point.policy)
    total = joint.sum(axis=1)
    unvisited = total <= 0
    if unvisited.any():
        _add(joint, unvisited.astype(float), points[int(np.argmax(weights))].policy)
    policy = joint / joint.sum(axis=1, keepdims=True)
    return kernel.evaluate(policy, total / total.sum())


def _add(joint: np.ndarray, visits: np.ndarray, policy: Policy) -> None:
    """``joint(s, a) += visits(s) pi(a | s)``."""
    if policy.ndim == 2:
        joint += visits[:, None] * policy
    else:
        joint[np.arange(len(policy)), policy] += visits
