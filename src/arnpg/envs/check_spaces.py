"""What must be looked at in a Gymnasium environment itself: its spaces, bounds, ``info``, how it closes."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

from arnpg.errors import EnvironmentFault, SettingsError

from .environment_source import Source, quiet
from .finding import Finding, failed, fine, note
from .gymnasium_seat import Seat
from .host_spaces import ActionCoder
from .observation_layout import ObservationLayout
from .reward_names import declared_width

__all__ = ["check_spaces"]

LOOKS = 300  # steps
UNKNOWN = -1


def check_spaces(source: Source, time_limit: int, seed: int) -> list[Finding]:
    """Both spaces, then some hundred steps in which observations are held against theirs."""
    env = _Watched(source())
    found = [_space("observation_space", env, ObservationLayout), _space("action_space", env, ActionCoder)]
    if all(finding.holds for finding in found):
        found += _look(env, time_limit, seed)
    for time in ("once", "a second time"):
        try:
            env.close()
        except Exception as error:
            found.append(failed("close", f"called {time} it raised {type(error).__name__}: {error}"))
            break
    return found


def _space(name: str, env: Any, kind: type) -> Finding:
    space = getattr(env, name)
    try:
        kind(space)
    except SettingsError as error:
        return failed(name, str(error))
    return fine(name, _kind(space))


def _kind(space: Any) -> str:
    text = str(space).replace("\n", " ")
    return text if len(text) <= 80 else f"{text[:77]}..."


def _look(env: _Watched, time_limit: int, seed: int) -> list[Finding]:
    width = declared_width(env)
    env.action_space.seed(seed)
    seat = Seat(env, 0, UNKNOWN if width is None else width, time_limit)
    keys: collections.Counter[str] = collections.Counter()
    outside: Finding | None = None
    try:
        seat.reset(seed)
        for _ in range(LOOKS):
            seen = seat.step(env.action_space.sample())
            outside = outside or _outside(env.observation_space, env.last)
            keys.update(key for key, value in seen.info.items() if _is_number(value))
            if seen.terminated or seen.truncated:
                seat.reset()
    except EnvironmentFault as fault:
        return [failed("first steps", str(fault))]
    kind = "a number" if seat.width is None else f"a vector of {seat.width}"
    found = [outside or fine("bounds", "every observation is in its space"), fine("reward", kind)]
    always = [key for key, times in keys.items() if times == LOOKS]
    if always:
        found.append(fine("info", f"{', '.join(always)}: usable as objectives, 'info:{always[0]}'"))
    sometimes = sorted(set(keys) - set(always))
    if sometimes:
        found.append(note("info", f"{', '.join(sometimes)} in some steps only: not usable as objectives"))
    return found


def _outside(space: Any, observation: Any) -> Finding | None:
    """What is wrong with an observation that has the shape of its space."""
    from gymnasium import spaces

    if not isinstance(space, spaces.Box):
        with quiet():
            inside = space.contains(observation)
        return None if inside else failed("bounds", f"the observation {observation!r} is not in {space}.")
    array = np.asarray(observation)
    below, above = array < space.low, array > space.high
    if (below | above).any():
        place = tuple(int(x) for x in np.argwhere(below | above)[0])
        bound = space.low[place] if below[place] else space.high[place]
        where = ", ".join(map(str, place))
        side = "below low" if below[place] else "above high"
        return failed("bounds", f"observation[{where}] is {array[place]:g}, {side}={bound:g}; widen the space.")
    if array.dtype != space.dtype:
        return note("bounds", f"observations are {array.dtype}, the space says {space.dtype}; they are cast to float32")
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.number, np.bool_)) or (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf"
    )


class _Watched:
    """An environment whose last observation can be looked at as it was given."""

    def __init__(self, env: Any) -> None:
        self.env, self.last = env, None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def reset(self, **keywords: Any) -> Any:
        """Pass it on."""
        found = self.env.reset(**keywords)
        self.last = found[0] if isinstance(found, tuple) and found else None
        return found

    def step(self, action: Any) -> Any:
        """Pass it on."""
        found = self.env.step(action)
        self.last = found[0] if isinstance(found, tuple) and found else None
        return found
