"""How large an example is to be."""

from __future__ import annotations

import numpy as np

from arnpg.errors import ModelError
from arnpg.tabular import memory
from arnpg.tabular.assembly import CURE, ENTRY

__all__ = ["side"]


def side(states: int, dimensions: int) -> int:
    """The side of the cube of ``dimensions`` that has about ``states`` points; at least two."""
    if isinstance(states, bool) or not isinstance(states, int | np.integer) or states < 2**dimensions:
        raise ModelError(f"states must be a whole number >= {2**dimensions}, got {states!r}.")
    memory.require(ENTRY * states, f"an example of {states} states", CURE)
    return max(2, round(states ** (1 / dimensions)))
