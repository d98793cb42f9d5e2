"""Any Gymnasium environment as a batch in this process: one call after the other, with resets where episodes end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import numpy as np

from arnpg.errors import ArnpgError, EnvironmentFault, SettingsError

from .env import BoxActions, DiscreteActions
from .environment_source import Source
from .gymnasium_seat import Seat
from .host import AbstractHostBatch, AbstractHostEnvironment, HostStep, check_opening, environment_seeds
from .host_objectives import HostTransition, Infos, Reader, read_all
from .host_spaces import ActionCoder

__all__ = ["GymnasiumBatch", "GymnasiumEnvironment", "RawStep", "Seats"]


class RawStep(NamedTuple):
    """A step before its objectives are read."""

    rewards: np.ndarray
    next_observations: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    observations: np.ndarray
    infos: Sequence[dict[str, Any]]


class Stepper(Protocol):
    """Environments side by side, in this process or in others."""

    action_space: Any

    def reset(self, seeds: Sequence[int | None]) -> np.ndarray: ...  # noqa: D102
    def step(self, actions: np.ndarray) -> RawStep: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102
    def fault(self, index: int, what: str) -> EnvironmentFault: ...  # noqa: D102


class Seats:
    """Environments in this process, stepped one after the other; ``first`` is the index of the first."""

    def __init__(self, source: Callable[[], Any], count: int, width: int | None, time_limit: int, first: int = 0):
        self.seats: list[Seat] = []
        try:
            for index in range(first, first + count):
                self.seats.append(Seat(source(), index, width, time_limit))
        except BaseException:
            self.close()
            raise
        self.first, self.action_space = first, self.seats[0].env.action_space
        if len({id(seat.env) for seat in self.seats}) < count:
            raise SettingsError("the function gave the same environment twice; it must make a new one at each call.")

    def reset(self, seeds: Sequence[int | None]) -> np.ndarray:
        """A fresh episode everywhere."""
        return np.stack([seat.reset(seed) for seat, seed in zip(self.seats, seeds, strict=True)])

    def step(self, actions: np.ndarray) -> RawStep:
        """One action each; what is over begins anew."""
        # A Discrete action is a Python number: `action == 1` and lookups in a table must mean what they say.
        given = actions.tolist() if actions.ndim == 1 else actions
        seen = [seat.step(action) for seat, action in zip(self.seats, given, strict=True)]
        following = np.stack([one.observation for one in seen])
        terminated = np.array([one.terminated for one in seen])
        truncated = np.array([one.truncated for one in seen])
        observations = following
        if terminated.any() or truncated.any():
            observations = following.copy()
            for index in np.flatnonzero(terminated | truncated):
                observations[index] = self.seats[index].reset()
        rewards = np.array([one.reward for one in seen])
        return RawStep(rewards, following, terminated, truncated, observations, [one.info for one in seen])

    def close(self) -> None:
        """Close all."""
        for seat in self.seats:
            seat.close()

    def fault(self, index: int, what: str) -> EnvironmentFault:
        """The error of one of them, by its index in the whole batch."""
        return self.seats[index - self.first].fault(what)


class GymnasiumEnvironment(AbstractHostEnvironment):
    """A Gymnasium environment with named objectives; made by ``make_host``."""

    names: tuple[str, ...] = eqx.field(static=True)
    observation_size: int = eqx.field(static=True)
    actions: DiscreteActions | BoxActions = eqx.field(static=True)
    time_limit: int = eqx.field(static=True)
    label: str = eqx.field(static=True)
    source: Source = eqx.field(static=True)
    readers: tuple[Reader, ...] = eqx.field(static=True)
    width: int | None = eqx.field(static=True)
    workers: int = eqx.field(static=True, default=0)
    step_timeout: float = eqx.field(static=True, default=60.0)

    def open(self, count: int, seed: int) -> GymnasiumBatch:
        """``count`` environments; environment ``i`` is seeded once, from ``(seed, i)``, and runs on from there."""
        check_opening(count, seed)
        return GymnasiumBatch(self, count, seed, Seats(self.source, count, self.width, self.time_limit))


class GymnasiumBatch(AbstractHostBatch):
    """Live environments of one description."""

    def __init__(self, description: GymnasiumEnvironment, count: int, seed: int, stepper: Stepper) -> None:
        self.count, self.description = count, description
        self._stepper, self._seed = stepper, seed
        self._unseeded, self._closed = True, False
        self._observations: np.ndarray | None = None
        self._coder = ActionCoder(stepper.action_space)

    def reset(self, seed: int | None = None) -> np.ndarray:
        """Begin a fresh episode everywhere."""
        self._refuse_closed()
        if seed is not None:
            check_opening(self.count, seed)
            self._seed, self._unseeded = seed, True
        seeds = environment_seeds(self._seed, self.count) if self._unseeded else [None] * self.count
        with self._closing_on_fault():
            self._observations = self._stepper.reset(seeds)
        self._unseeded = False
        return self._observations

    def step(self, actions: np.ndarray) -> HostStep:
        """Act everywhere, then read the objectives."""
        self._refuse_closed()
        before = self._observations
        if before is None:
            raise SettingsError("step was called before reset; call reset first.")
        decoded = self._coder.decode(actions)
        if len(decoded) != self.count:
            raise SettingsError(f"actions must hold one for each of {self.count} environments, got {len(decoded)}.")
        with self._closing_on_fault():
            raw = self._stepper.step(decoded)
            rewards = self._read(before, decoded, raw)
        self._observations = raw.observations
        return HostStep(rewards, raw.next_observations, raw.terminated, raw.truncated, raw.observations)

    def close(self) -> None:
        """Close the environments."""
        self._closed = True
        self._stepper.close()

    def _read(self, before: np.ndarray, actions: np.ndarray, raw: RawStep) -> np.ndarray:
        """``(b, m)``; the numbers of functions and of ``info`` are checked here, the reward is where it comes from."""
        info = Infos(raw.infos)
        transition = HostTransition(
            before, actions, raw.rewards, raw.next_observations, raw.terminated, raw.truncated, info
        )
        rewards = read_all(self.description.readers, transition)
        if not np.isfinite(rewards).all():
            index, objective = np.argwhere(~np.isfinite(rewards))[0]
            name = self.description.names[objective]
            raise self._stepper.fault(int(index), f"objective {name!r} is {rewards[index, objective]}.")
        return rewards

    @contextlib.contextmanager
    def _closing_on_fault(self) -> Iterator[None]:
        try:
            yield
        except ArnpgError:
            self.close()
            raise

    def _refuse_closed(self) -> None:
        if self._closed:
            raise SettingsError(f"the environments of {self.description.label} are closed; open new ones.")
