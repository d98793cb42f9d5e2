"""Gymnasium's action spaces as a policy sees them: one number or one vector.

A ``MultiDiscrete`` action is one number in the product of its parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from arnpg.errors import NumericalError, SettingsError

from .env import BoxActions, DiscreteActions

__all__ = ["MOST_ACTIONS", "ActionCoder"]

MOST_ACTIONS = 4096  # of a MultiDiscrete space taken as one: beyond, a softmax over the product learns nothing


class ActionCoder:
    """What the policy chooses, and how it is given to the environment.

    Attributes:
        actions: the policy's actions.
        decode: from a batch of the policy's actions to a batch of the environment's; an array.
    """

    def __init__(self, space: Any) -> None:
        from gymnasium import spaces

        self.space = space
        if isinstance(space, spaces.Discrete):
            self.actions: DiscreteActions | BoxActions = DiscreteActions(int(space.n))
            self.decode = self._discrete
        elif isinstance(space, spaces.MultiDiscrete):
            self.actions = DiscreteActions(_product(space))
            self.decode = self._multi_discrete
        elif isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating) and np.prod(space.shape) > 0:
            size = int(np.prod(space.shape))
            self.actions = BoxActions(size, float(space.low.min()), float(space.high.max()))
            self.low, self.high = space.low.reshape(-1), space.high.reshape(-1)
            self.decode = self._box
        else:
            raise SettingsError(
                f"action_space {space} is not supported; supported are Discrete, MultiDiscrete (at most "
                f"{MOST_ACTIONS} combinations) and Box of floats. Wrap the environment into one of these."
            )

    def _checked_numbers(self, actions: np.ndarray) -> np.ndarray:
        count = getattr(self.actions, "count", 0)
        found = np.asarray(actions)
        if found.ndim != 1 or not np.issubdtype(found.dtype, np.integer):
            raise NumericalError(f"actions must be whole numbers, one for each environment, got {actions!r}.")
        if found.min() < 0 or found.max() >= count:
            index = int(np.flatnonzero((found < 0) | (found >= count))[0])
            raise NumericalError(f"actions[{index}] must be in 0 .. {count - 1}, got {found[index]}.")
        return found

    def _discrete(self, actions: np.ndarray) -> np.ndarray:
        return self._checked_numbers(actions) + int(self.space.start)

    def _multi_discrete(self, actions: np.ndarray) -> np.ndarray:
        parts = np.unravel_index(self._checked_numbers(actions), tuple(self.space.nvec.reshape(-1)))
        start = np.reshape(getattr(self.space, "start", 0) + np.zeros_like(self.space.nvec), -1)
        decoded = np.stack(parts, axis=-1) + start
        return decoded.reshape(-1, *self.space.shape).astype(self.space.dtype)

    def _box(self, actions: np.ndarray) -> np.ndarray:
        found = np.asarray(actions)
        if found.ndim != 2 or found.shape[1] != len(self.low):
            raise NumericalError(f"actions must have shape (environments, {len(self.low)}), got {found.shape}.")
        if not np.isfinite(found).all():
            index = int(np.flatnonzero(~np.isfinite(found).all(axis=1))[0])
            raise NumericalError(f"actions[{index}] is {found[index].tolist()}: the policy's numbers have run away.")
        # NumPy's clip checks its arguments anew at each call; on eight short rows the two ufuncs take half the time.
        clipped = np.minimum(np.maximum(found, self.low), self.high)
        return clipped.astype(self.space.dtype, copy=False).reshape(-1, *self.space.shape)


def _product(space: Any) -> int:
    count = int(np.prod(space.nvec.astype(object)))
    if count > MOST_ACTIONS:
        raise SettingsError(
            f"action_space {space} has {count} combinations, more than {MOST_ACTIONS}; "
            "wrap the environment so that it offers fewer, or a Box."
        )
    return count
