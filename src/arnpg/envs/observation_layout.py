"""Gymnasium's observations as a policy sees them: flat float32 vectors.

``Discrete`` becomes one-hot, ``Dict`` and ``Tuple`` are flattened part by part, as by ``gymnasium.spaces.flatten``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from arnpg.errors import SettingsError

__all__ = ["ObservationLayout"]

SPACES = "Box, Discrete, MultiDiscrete, MultiBinary, and Dict and Tuple of these"


class ObservationLayout:
    """How an observation becomes a vector; refuses one that does not have the space's shape and kind."""

    def __init__(self, space: Any) -> None:
        from gymnasium import spaces

        self.space = space
        self.box = isinstance(space, spaces.Box)
        self._flatten = spaces.flatten
        self.size = int(spaces.flatdim(space)) if _is_flat(space) else 0
        if self.size < 1:
            raise SettingsError(f"observation_space {space} cannot be flattened; supported are {SPACES}.")

    def flat(self, observation: Any) -> np.ndarray:
        """``(o,)`` float32; raises ``ValueError`` with what is wrong."""
        if not self.box:
            return self._checked_flat(observation)
        found = np.asarray(observation)
        if found.shape != self.space.shape:
            raise ValueError(
                f"the observation has shape {found.shape}, observation_space says {self.space.shape}; make them agree."
            )
        if found.dtype != self.space.dtype and not np.can_cast(found.dtype, self.space.dtype, "same_kind"):
            raise ValueError(
                f"the observation has dtype {found.dtype}, observation_space says {self.space.dtype}; "
                f"return observation.astype(np.{self.space.dtype})."
            )
        return found.reshape(-1).astype(np.float32)

    def _checked_flat(self, observation: Any) -> np.ndarray:
        try:
            flat = np.asarray(self._flatten(self.space, observation), np.float32)
        except (KeyError, IndexError, TypeError, ValueError, AssertionError) as error:
            raise ValueError(f"the observation {observation!r} is not in {self.space} ({error!r}).") from error
        if flat.shape != (self.size,):
            raise ValueError(f"the observation {observation!r} is not in {self.space}: it has {flat.size} numbers.")
        return flat


def _is_flat(space: Any) -> bool:
    """Whether the numbers of an observation mean something one by one; the letters of a ``Text`` do not."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        return all(map(_is_flat, parts))
    return isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary)
