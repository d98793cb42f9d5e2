"""Playing a recorded fault again: the same seed, the same state of the generator, the same actions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from arnpg.errors import EnvironmentFault, SettingsError

from .environment_source import find_source, own_time_limit
from .gymnasium_seat import Seat
from .reward_names import declared_width

__all__ = ["replay"]

UNKNOWN = -1
NEVER = 2**62


def replay(
    env: Any,
    record: Mapping[str, np.ndarray],
    *,
    options: Mapping[str, Any] | None = None,
    time_limit: int | None = None,
) -> EnvironmentFault | None:
    """The fault of one environment if it comes again, or none.

    Args:
        env: as ``make_host`` takes it; a Gymnasium environment.
        record: ``EnvironmentFault.details``, or what was read from ``fault.npz``.
        options: as for ``make_host``.
        time_limit: as for ``make_host``.
    """
    missing = sorted({"seed", "episode", "random_state", "episode_actions"} - set(record))
    if missing:
        raise SettingsError(
            f"the record has no {missing[0]}: the fault was seen from outside (EnvPool, or a process that died), "
            "and the start of its episode is not known."
        )
    source = find_source(env, options)
    made = source()
    limit = time_limit or source.time_limit or own_time_limit(made) or NEVER
    width = declared_width(made)
    seat = Seat(made, int(record["environment"]), UNKNOWN if width is None else width, limit)
    try:
        seat.reset(int(record["seed"]))
        if int(record["episode"]) > 0:
            _restore(made, str(record["random_state"]))
            seat.reset()
        for action in record["episode_actions"]:
            seat.step(action.item() if action.ndim == 0 else action)
    except EnvironmentFault as fault:
        return fault
    finally:
        seat.close()
    return None


def _restore(env: Any, text: str) -> None:
    state = json.loads(text)
    generator = getattr(getattr(env, "unwrapped", env), "_np_random", None)
    if state is not None and generator is not None:
        generator.bit_generator.state = state
