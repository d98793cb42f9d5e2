"""Any Gymnasium environment as a batch with named objectives, in this process or spread over several."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import equinox as eqx
import numpy as np

from arnpg.errors import ArnpgError, SettingsError

from .env import BoxActions, DiscreteActions
from .environment_source import Source
from .faults import Losses
from .gymnasium_seats import RawStep, Seats, Stepper
from .host import AbstractHostBatch, AbstractHostEnvironment, HostStep, check_opening, environment_seeds
from .host_objectives import HostTransition, Infos, Reader, read_all
from .host_spaces import ActionCoder
from .workers import Workers

__all__ = ["GymnasiumBatch", "GymnasiumEnvironment"]


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
    drop: bool = eqx.field(static=True, default=False)

    @property
    def may_drop(self) -> bool:
        """With ``on_fault="drop"``, and always with workers: one that dies or hangs is begun anew."""
        return self.drop or self.workers > 0

    def open(self, count: int, seed: int) -> GymnasiumBatch:
        """``count`` environments; environment ``i`` is seeded once, from ``(seed, i)``, and runs on from there."""
        check_opening(count, seed)
        if self.workers:
            stepper: Stepper = Workers(
                self.source, count, self.width, self.time_limit, self.drop, self.workers, self.step_timeout
            )
        else:
            stepper = Seats(self.source, count, self.width, self.time_limit, self.drop)
        return GymnasiumBatch(self, count, seed, stepper)


class GymnasiumBatch(AbstractHostBatch):
    """Live environments of one description."""

    def __init__(self, description: GymnasiumEnvironment, count: int, seed: int, stepper: Stepper) -> None:
        self.count, self.description = count, description
        self._stepper, self._seed = stepper, seed
        self._unseeded, self._closed = True, False
        self._observations: np.ndarray | None = None
        self._coder, self._losses = ActionCoder(stepper.action_space), Losses(count)
        self.faults = self._losses.faults

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
            rewards, raw = self._read(before, decoded, raw)
            step = self._without_losses(before, rewards, raw)
        self._observations = step.observations
        return step

    def close(self) -> None:
        """Close the environments."""
        self._closed = True
        self._stepper.close()

    def _read(self, before: np.ndarray, actions: np.ndarray, raw: RawStep) -> tuple[np.ndarray, RawStep]:
        """``(b, m)``; the numbers of functions and of ``info`` are checked here, the reward is where it comes from."""
        rewards = self._read_rows(before, actions, raw)
        if np.isfinite(rewards).all():
            return rewards, raw
        observations = raw.observations.copy()
        for index in np.flatnonzero(~np.isfinite(rewards).all(axis=1)).tolist():
            objective = int(np.flatnonzero(~np.isfinite(rewards[index]))[0])
            name = self.description.names[objective]
            fault = self._stepper.fault(index, f"objective {name!r} is {rewards[index, objective]}.")
            if not self.description.drop:
                raise fault
            raw.lost[index] = fault
            observations[index] = self._stepper.renew(index)
        return rewards, raw._replace(observations=observations)

    def _read_rows(self, before: np.ndarray, actions: np.ndarray, raw: RawStep) -> np.ndarray:
        """The objectives; a row that is no step is read as another is, since its ``info`` may lack what they need."""
        readers = self.description.readers
        if not raw.lost:
            _, following, terminated, truncated, *_ = raw
            own, info = raw.rewards, Infos(raw.infos)
            return read_all(readers, HostTransition(before, actions, own, following, terminated, truncated, info))
        rows = [index for index in range(self.count) if index not in raw.lost]
        if not rows:
            return np.zeros((self.count, len(self.description.names)), np.float32)
        places = np.array([index if index in rows else rows[0] for index in range(self.count)])
        arrays = (before, actions, raw.rewards, raw.next_observations, raw.terminated, raw.truncated)
        start, given, own, following, terminated, truncated = (array[places] for array in arrays)
        info = Infos([raw.infos[place] for place in places])
        return read_all(readers, HostTransition(start, given, own, following, terminated, truncated, info))

    def _without_losses(self, before: np.ndarray, rewards: np.ndarray, raw: RawStep) -> HostStep:
        """The step, with what was lost counted and marked."""
        over = raw.terminated | raw.truncated
        if not raw.lost:
            self._losses.finished(over)
            return HostStep(rewards, raw.next_observations, raw.terminated, raw.truncated, raw.observations)
        for fault in raw.lost.values():
            self._losses.add(fault)
        dropped = np.isin(np.arange(self.count), list(raw.lost))
        self._losses.finished(over & ~dropped)
        return HostStep(
            np.where(dropped[:, None], np.float32(0), rewards),
            np.where(dropped[:, None], before, raw.next_observations),
            raw.terminated & ~dropped,
            raw.truncated | dropped,
            raw.observations,
            dropped,
        )

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
