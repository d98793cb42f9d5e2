"""One live Gymnasium environment, held to its word at every step.

What Gymnasium only warns of, or takes silently, is an ``EnvironmentFault`` here: numbers that are none, a reward
vector that changes its length, an observation of another shape, an exception, an episode that is over at its reset.
"""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any, NamedTuple

import numpy as np

from arnpg.errors import EnvironmentFault

from .faults import environment_fault, fresh_seed
from .observation_layout import ObservationLayout

__all__ = ["Seat", "Seen"]

FIVE = "(observation, reward, terminated, truncated, info), or with a cost after the reward"


class Seen(NamedTuple):
    """What one step of one environment shows; ``observation`` is the one before any reset."""

    reward: Any
    observation: np.ndarray
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class Seat:
    """An environment at its place in the batch.

    Arguments: ``env``, the environment; ``index``, its place; ``width``, the length of its reward vector, none where
    the reward is a number, ``-1`` where that is not known yet; ``time_limit``, in steps.
    """

    def __init__(self, env: Any, index: int, width: int | None, time_limit: int) -> None:
        self.env, self.index, self.width, self.time_limit = env, index, width, time_limit
        self.layout = ObservationLayout(env.observation_space)
        self.seed, self.steps, self.elapsed, self.episode = 0, 0, 0, 0
        self.actions: list[Any] = []
        self.random_state: Any = None
        self._ended = (self.episode, self.actions, self.random_state)
        self.last = np.zeros(self.layout.size, np.float32)
        self.closed = False

    def reset(self, seed: int | None = None) -> np.ndarray:
        """Begin an episode; ``(o,)``."""
        if seed is not None:
            self.seed, self.steps, self.episode = seed, 0, -1
        self._ended = (self.episode, self.actions, self.random_state)
        self.episode, self.elapsed, self.actions = self.episode + 1, 0, []
        self.random_state = _random_state(self.env) if seed is None else None
        try:
            found = self.env.reset(seed=seed) if seed is not None else self.env.reset()
        except Exception as error:
            raise self.fault(f"reset raised {type(error).__name__}: {error}", error) from error
        if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], dict)):
            raise self.fault(f"reset must return (observation, info), got {_shape_of(found)}.")
        over = [key for key in ("terminated", "truncated", "done") if _is_true(found[1].get(key))]
        if over:
            raise self.fault(f"reset began an episode that is already over: info[{over[0]!r}] is true.")
        self.last = self._flat(found[0])
        return self.last

    def step(self, action: Any) -> Seen:
        """Act once; the episode is truncated at the time limit, and termination wins."""
        self.steps, self.elapsed = self.steps + 1, self.elapsed + 1
        self.actions.append(action)
        try:
            found = self.env.step(action)
        except Exception as error:
            raise self.fault(f"step raised {type(error).__name__}: {error}", error) from error
        if not isinstance(found, tuple) or len(found) not in (5, 6) or not isinstance(found[-1], dict):
            raise self.fault(f"step must return {FIVE}; got {_shape_of(found)}.")
        info = found[-1] if len(found) == 5 else {**found[-1], "cost": found[2]}
        terminated, truncated = self._flag(found[-3], "terminated"), self._flag(found[-2], "truncated")
        truncated = (truncated or self.elapsed >= self.time_limit) and not terminated
        reward, self.last = self._reward(found[1]), self._flat(found[0])
        return Seen(reward, self.last, terminated, truncated, info)

    def renew(self, env: Any, attempt: int) -> np.ndarray:
        """Go on with another environment, and another seed; ``(o,)``."""
        self.close()
        self.env, self.closed = env, False
        return self.reset(fresh_seed(self.seed, attempt))

    def close(self) -> None:
        """Close once, whatever the environment makes of it."""
        if not self.closed:
            self.closed = True
            with contextlib.suppress(Exception):
                self.env.close()

    def fault(self, what: str, error: BaseException | None = None, *, of_step: bool = False) -> EnvironmentFault:
        """The named error, with all that is needed to come here again.

        With ``of_step`` it is of the last step, which may have ended an episode that another has followed since.
        """
        now = (self.episode, self.actions, self.random_state)
        episode, actions, state = self._ended if of_step and not self.actions else now
        more = {"episode": episode, "random_state": json.dumps(state, default=np.ndarray.tolist)}
        return environment_fault(
            what, environment=self.index, seed=self.seed, step=self.steps, actions=actions, more=more, error=error
        )

    def _flat(self, observation: Any) -> np.ndarray:
        try:
            flat = self.layout.flat(observation)
        except ValueError as error:
            raise self.fault(str(error)) from error
        if not np.isfinite(flat).all():
            place = int(np.flatnonzero(~np.isfinite(flat))[0])
            raise self.fault(f"observation[{place}] is {flat[place]}.")
        return flat

    def _reward(self, reward: Any) -> Any:
        """A float or a vector, of the kind that it was the first time."""
        if isinstance(reward, (float, int)) and self.width is None and math.isfinite(reward):
            return float(reward)
        value = self._reward_array(reward)
        if not np.isfinite(value).all():
            raise self.fault(f"the reward is {np.asarray(value).tolist()}.")
        return value

    def _reward_array(self, reward: Any) -> np.ndarray:
        try:
            value = np.asarray(reward, np.float64)
        except (TypeError, ValueError) as error:
            raise self.fault(f"the reward must be a number or a vector of numbers, got {reward!r}.") from error
        width = None if value.shape in ((), (1,)) and self.width in (None, -1) else value.shape[0] if value.ndim else 0
        if self.width == -1:
            self.width = width
        if width != self.width or value.ndim > 1:
            stated = _kind(() if self.width is None else (self.width,))
            raise self.fault(f"the reward is {_kind(value.shape)}, and should be {stated} at every step.")
        return value.reshape(()) if width is None else value

    def _flag(self, value: Any, name: str) -> bool:
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        if isinstance(value, (int, np.integer, np.ndarray)) and np.size(value) == 1:
            return bool(value)
        raise self.fault(f"{name} must be True or False, got {value!r}.")


def _kind(shape: tuple[int, ...]) -> str:
    return "a number" if shape == () else f"a vector of {shape[0]}" if len(shape) == 1 else f"an array of shape {shape}"


def _is_true(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_)) and bool(value)


def _shape_of(found: Any) -> str:
    if not isinstance(found, tuple):
        return f"{type(found).__name__}; an environment of the old Gym interface must be wrapped"
    return f"{len(found)} values ({', '.join(type(part).__name__ for part in found)})"


def _random_state(env: Any) -> Any:
    """The state of the environment's generator, if it has one of Gymnasium's kind."""
    generator = getattr(getattr(env, "unwrapped", env), "_np_random", None)
    return None if generator is None else generator.bit_generator.state
