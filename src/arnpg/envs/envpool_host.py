"""EnvPool's environments, stepped in C++, as a batch with named objectives.

EnvPool begins a new episode in the step *after* the last one, and ignores that step's action. So that no step is lost,
the environments whose episodes are over are reset at once, in the step itself; the episodes are the same.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import numpy as np

from arnpg.errors import EnvironmentFault, SettingsError

from .env import BoxActions, DiscreteActions
from .environment_source import quiet
from .envpool_source import PoolSource
from .faults import Losses, environment_fault
from .host import AbstractHostBatch, AbstractHostEnvironment, HostStep, check_opening, environment_seeds
from .host_objectives import HostObjective, HostTransition, Reader, bind_objectives, read_all
from .host_spaces import ActionCoder

__all__ = ["EnvPoolBatch", "EnvPoolEnvironment", "describe_pool"]

LOOKING_SEED = 0
HIDDEN = ("env_id", "players", "elapsed_step")  # EnvPool's bookkeeping, not the environment's


class EnvPoolEnvironment(AbstractHostEnvironment):
    """An environment of EnvPool with named objectives; made by ``make_host``."""

    names: tuple[str, ...] = eqx.field(static=True)
    observation_size: int = eqx.field(static=True)
    actions: DiscreteActions | BoxActions = eqx.field(static=True)
    time_limit: int = eqx.field(static=True)
    label: str = eqx.field(static=True)
    source: PoolSource = eqx.field(static=True)
    readers: tuple[Reader, ...] = eqx.field(static=True)
    threads: int = eqx.field(static=True, default=0)
    drop: bool = eqx.field(static=True, default=False)

    @property
    def may_drop(self) -> bool:
        """With ``on_fault="drop"``."""
        return self.drop

    def open(self, count: int, seed: int) -> EnvPoolBatch:
        """``count`` environments; environment ``i`` is seeded once, from ``(seed, i)``, and runs on from there."""
        check_opening(count, seed)
        return EnvPoolBatch(self, count, seed)


class Pool:
    """A pool's arrays as the adapter wants them: flat observations, flags, ``info`` without bookkeeping.

    Attributes:
        space: of observations.
        coder: of actions.
    """

    def __init__(self, source: PoolSource, seeds: Sequence[int], threads: int, time_limit: int) -> None:
        self.seeds, self.count, self.time_limit = list(seeds), len(seeds), time_limit
        with quiet():
            self.pool = source(self.seeds, threads, time_limit + 1)
            self.space, self.coder = self.pool.observation_space, ActionCoder(self.pool.action_space)
        self.exchange = Exchange(self.pool, self.count)
        self._now, self._soonest = 0, time_limit
        self._begun = self._began = np.zeros(self.count, np.int64)

    @property
    def lengths(self) -> np.ndarray:
        """``(b,)``, steps in the episodes so far, those included that the last step brought to an end."""
        return self._now - self._began

    def reset(self) -> np.ndarray:
        """A fresh episode everywhere; ``(b, o)``."""
        self._now, self._soonest = 0, self.time_limit
        self._begun = self._began = np.zeros(self.count, np.int64)
        return flat(self.pool.reset()[0], self.count, self.space)

    def step(self, actions: np.ndarray) -> tuple[HostStep, dict[str, np.ndarray]]:
        """One action each; the step, in the place of its objectives the pool's own rewards ``(b,)``, and ``info``."""
        found, rewards, terminated, truncated, info = self.exchange(actions)
        observations = following = flat(found, self.count, self.space)
        self._now += 1
        self._began = self._begun
        # Most steps end nothing, and then there is nothing to count.
        if self._now >= self._soonest or terminated.any() or truncated.any():
            truncated = (truncated | (self.lengths >= self.time_limit)) & ~terminated
            observations = self.begin_anew(terminated | truncated, following)
        return HostStep(rewards, following, terminated, truncated, observations), info

    def begin_anew(self, over: np.ndarray, observations: np.ndarray) -> np.ndarray:
        """Fresh episodes where ``over (b,)``; the observations with the first ones of these in their places."""
        places = np.flatnonzero(over).astype(np.int32)
        if not len(places):
            return observations
        self._begun = np.where(over, self._now, self._begun)
        self._soonest = int(self._begun.min()) + self.time_limit
        first, order = self.exchange.reset(places)
        observations = observations.copy()
        observations[order] = flat(first, len(places), self.space)
        return observations


class Exchange:
    """A pool's ``step`` and ``reset``, without the trees that it makes of arrays whose names are not nested.

    On the small batches of training these cost as much as a tenth of the physics.
    """

    def __init__(self, pool: Any, count: int) -> None:
        self.pool, self.ids = pool, np.arange(count, dtype=np.int32)
        keys: list[str] = list(getattr(pool, "_state_keys", []))
        given: list[str] = list(getattr(pool, "_action_keys", []))
        self.plain = {"obs", "info:env_id"} <= set(keys) and given == ["env_id", "players.env_id", "action"]
        if self.plain:
            self.kind = pool._spec._action_spec[-1][0]
            self.places = [keys.index(key) for key in ("obs", "reward", "done", "trunc")]
            named = [(key.removeprefix("info:"), place) for place, key in enumerate(keys) if key.startswith("info:")]
            self.info = [(name, place) for name, place in named if not name.startswith(HIDDEN)]
            self.order = keys.index("info:env_id")

    def reset(self, places: np.ndarray) -> tuple[Any, np.ndarray]:
        """First observations of some environments, and whose they are."""
        if not self.plain:
            first, info = self.pool.reset(places)
            return first, info["env_id"]
        self.pool._reset(places)
        values = self.pool._recv()
        return values[self.places[0]], values[self.order]

    def __call__(self, actions: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Observations, rewards, terminated, truncated, ``info``."""
        if not self.plain:
            *seen, info = self.pool.step(actions)
            return *seen, {key: value for key, value in info.items() if not key.startswith(HIDDEN)}
        self.pool._send([self.ids, self.ids, np.ascontiguousarray(actions, self.kind)])
        values = self.pool._recv()
        seen, rewards, done, cut = (values[place] for place in self.places)
        return seen, rewards, done & ~cut, cut, {name: values[place] for name, place in self.info}


def flat(found: Any, count: int, space: Any) -> np.ndarray:
    """``(b, o)`` float32, as Gymnasium flattens it: the parts of a ``Dict`` in its order, ``Discrete`` one-hot."""
    if isinstance(found, Mapping):
        return np.concatenate([flat(found[key], count, part) for key, part in space.spaces.items()], axis=1)
    if hasattr(space, "n"):
        return np.eye(space.n, dtype=np.float32)[found.reshape(count) - space.start]
    return found.reshape(count, -1).astype(np.float32)


class EnvPoolBatch(AbstractHostBatch):
    """Live environments of one description."""

    def __init__(self, description: EnvPoolEnvironment, count: int, seed: int) -> None:
        self.count, self.description = count, description
        self._closed, self._losses = False, Losses(count)
        self.faults, self._readers = self._losses.faults, description.readers
        self._open(seed)

    def reset(self, seed: int | None = None) -> np.ndarray:
        """Begin a fresh episode everywhere; a pool is seeded where it is made, so that a seed makes a new one."""
        self._refuse_closed()
        if seed is not None:
            check_opening(self.count, seed)
            self._open(seed)
        self._observations = self._pool.reset()
        self._actions.clear()
        for index in np.flatnonzero(~np.isfinite(self._observations).all(axis=1)).tolist():
            fault = self._fault(index, self._wrong(self._observations[index], np.zeros(0)))
            self.close()
            raise fault
        return self._observations

    def step(self, actions: np.ndarray) -> HostStep:
        """Act everywhere, then read the objectives."""
        self._refuse_closed()
        before = self._observations
        if before is None:
            raise SettingsError("step was called before reset; call reset first.")
        decoded = self._pool.coder.decode(actions)
        if len(decoded) != self.count:
            raise SettingsError(f"actions must hold one for each of {self.count} environments, got {len(decoded)}.")
        self._steps += 1
        self._actions.append(decoded)
        step, info = self._pool.step(decoded)
        step = step._replace(rewards=_read(self._readers, before, decoded, step, info))
        if not np.isfinite(step.next_observations).all() or not np.isfinite(step.rewards).all():
            step = self._without_losses(before, step)
        elif self.faults:
            self._losses.finished(step.terminated | step.truncated)
        self._observations = step.observations
        return step

    def close(self) -> None:
        """Let the pool go; its threads end with it."""
        if not self._closed:
            self._closed = True
            del self._pool

    def _open(self, seed: int) -> None:
        about = self.description
        self._pool = Pool(about.source, environment_seeds(seed, self.count), about.threads, about.time_limit)
        self._observations, self._steps = None, 0
        self._actions: collections.deque[np.ndarray] = collections.deque(maxlen=about.time_limit)

    def _without_losses(self, before: np.ndarray, step: HostStep) -> HostStep:
        """Raise what is wrong, or drop those episodes."""
        following, rewards = step.next_observations, step.rewards
        dropped = np.asarray(~np.isfinite(following).all(axis=1) | ~np.isfinite(rewards).all(axis=1))
        for index in np.flatnonzero(dropped).tolist():
            fault = self._fault(index, self._wrong(following[index], rewards[index]))
            if not self.description.drop:
                self.close()
                raise fault
            self._losses.add(fault)
        self._losses.finished((step.terminated | step.truncated) & ~dropped)
        running = dropped & ~(step.terminated | step.truncated)
        return HostStep(
            np.where(dropped[:, None], np.float32(0), rewards),
            np.where(dropped[:, None], before, following),
            step.terminated & ~dropped,
            step.truncated | dropped,
            self._pool.begin_anew(running, step.observations),
            dropped,
        )

    def _wrong(self, observation: np.ndarray, rewards: np.ndarray) -> str:
        places = np.flatnonzero(~np.isfinite(observation))
        if len(places):
            return f"observation[{places[0]}] is {observation[places[0]]}."
        place = int(np.flatnonzero(~np.isfinite(rewards))[0])
        return f"objective {self.description.names[place]!r} is {rewards[place]}."

    def _fault(self, index: int, what: str) -> EnvironmentFault:
        length = int(self._pool.lengths[index])
        actions = np.asarray([batch[index] for batch in self._actions])[len(self._actions) - length :]
        seed = self._pool.seeds[index]
        return environment_fault(what, environment=index, seed=seed, step=self._steps, actions=actions)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise SettingsError(f"the environments of {self.description.label} are closed; open new ones.")


def describe_pool(
    source: PoolSource, objectives: Mapping[str, HostObjective] | None, time_limit: int | None, threads: int, drop: bool
) -> EnvPoolEnvironment:
    """A description; two environments are made, reset and stepped once to see what they are like."""
    limit = time_limit or source.time_limit
    if limit is None:
        raise SettingsError(f"{source.name} has no time limit; pass time_limit (--time-limit), such as 1000.")
    pool = Pool(source, environment_seeds(LOOKING_SEED, 2), 1, limit)
    before = pool.reset()
    space = pool.pool.action_space
    space.seed(LOOKING_SEED)
    actions = np.stack([space.sample()] * 2)
    step, info = pool.step(actions)
    found = {"return": "reward"} | ({"cost": "info:cost"} if "cost" in info else {})
    readers = bind_objectives(found if objectives is None else objectives, None)
    _read(readers, before, actions, step, info)
    return EnvPoolEnvironment(
        names=tuple(reader.name for reader in readers),
        observation_size=before.shape[1],
        actions=pool.coder.actions,
        time_limit=limit,
        label=source.name,
        source=source,
        readers=readers,
        threads=threads,
        drop=drop,
    )


def _read(
    readers: tuple[Reader, ...], before: np.ndarray, actions: np.ndarray, step: HostStep, info: Mapping[str, np.ndarray]
) -> np.ndarray:
    own, following, terminated, truncated = step[:4]
    return read_all(readers, HostTransition(before, actions, own, following, terminated, truncated, info))
