"""Any Gymnasium environment, by id, class, function or instance, as one batched thing with named objectives."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from arnpg.errors import ObjectiveError, SettingsError

from .environment_source import Source, find_source, own_time_limit
from .envpool_host import describe_pool
from .envpool_source import PoolSource, find_pool
from .gymnasium_host import GymnasiumEnvironment
from .gymnasium_seat import Seat, Seen
from .host import AbstractHostEnvironment
from .host_objectives import HostObjective, HostTransition, Infos, Reader, bind_objectives, read_all
from .host_spaces import ActionCoder
from .reward_names import declared_width, reward_names

__all__ = ["BACKENDS", "make_host"]

BACKENDS = ("auto", "gymnasium", "envpool")
ON_FAULT = ("stop", "drop")
UNKNOWN = -1


def make_host(
    env: Any,
    objectives: Mapping[str, HostObjective] | None = None,
    *,
    backend: str = "auto",
    time_limit: int | None = None,
    workers: int = 0,
    options: Mapping[str, Any] | None = None,
    step_timeout: float = 60.0,
    on_fault: str = "stop",
) -> AbstractHostEnvironment:
    """Describe an environment; one is made, reset and stepped once to see what it is like.

    Args:
        env: an id such as ``"Hopper-v5"``, ``"mo-hopper-v5"`` or ``"package.module:Class"``, a class, a function
            without arguments that makes one, or an instance that Gymnasium made.
        objectives: for each name ``"reward"``, ``"reward[1]"``, ``"info:cost"``, or a function of a batched
            ``HostTransition``. Without it the reward as ``return``, a reward vector by the environment's own names or
            as ``reward_1`` and so on, and a cost, given after the reward or in ``info``, as ``cost``.
        backend: ``"envpool"``, ``"gymnasium"``, or ``"auto"``: EnvPool where it is installed, has the same environment
            or the only one, and shows what the objectives need.
        time_limit: steps after which an episode is truncated; by default what the environment is registered with.
        workers: processes to spread Gymnasium environments over, 0 for none; threads of EnvPool, 0 for a choice of
            its own.
        options: keyword arguments for the environment's constructor.
        step_timeout: seconds after which a worker that does not answer is killed and begun anew.
        on_fault: ``"stop"`` raises ``EnvironmentFault`` where an environment breaks its word; ``"drop"`` drops that
            episode, counts it in ``faults`` and begins anew with another seed, at most three times in a row.
    """
    _check(backend, time_limit, workers, step_timeout, on_fault)
    drop = on_fault == "drop"
    pool = "" if backend == "gymnasium" else find_pool(env, options)
    if isinstance(pool, PoolSource) and (backend == "envpool" or pool.same or pool.alone):
        try:
            return describe_pool(pool, objectives, time_limit, workers, drop)
        except ObjectiveError:
            if backend == "envpool" or pool.alone:
                raise
    elif backend == "envpool":
        raise SettingsError(str(pool))
    found = _gymnasium(find_source(env, options), objectives, time_limit)
    return dataclasses.replace(found, workers=workers, step_timeout=step_timeout, drop=drop)


def _gymnasium(
    source: Source, objectives: Mapping[str, HostObjective] | None, time_limit: int | None
) -> GymnasiumEnvironment:
    env = source()
    limit = _limit(time_limit, source, env)
    width = declared_width(env)
    seat = Seat(env, 0, UNKNOWN if width is None else width, limit)
    try:
        coder = ActionCoder(env.action_space)
        env.action_space.seed(0)
        action = env.action_space.sample()
        before = seat.reset(0)
        seen = seat.step(action)
        if objectives is None:
            objectives = _found(env, seat, seen, source.label)
        readers = bind_objectives(objectives, seat.width)
        _try(readers, before, action, seen)
    finally:
        seat.close()
    return GymnasiumEnvironment(
        names=tuple(reader.name for reader in readers),
        observation_size=seat.layout.size,
        actions=coder.actions,
        time_limit=limit,
        label=source.label,
        source=source,
        readers=readers,
        width=seat.width,
    )


def _limit(given: int | None, source: Source, env: Any) -> int:
    limit = given or source.time_limit or own_time_limit(env)
    if limit is None:
        raise SettingsError(
            f"{source.label} has no time limit, and its episodes may never end; pass time_limit (--time-limit), such "
            "as 1000."
        )
    return limit


def _found(env: Any, seat: Seat, seen: Seen, label: str) -> dict[str, HostObjective]:
    """The reward or its entries, and a cost where there is one."""
    if seat.width is None:
        found: dict[str, HostObjective] = {"return": "reward"}
    else:
        found = {name: f"reward[{i}]" for i, name in enumerate(reward_names(env, seat.width, label))}
    if "cost" in seen.info and "cost" not in found:
        found["cost"] = "info:cost"
    return found


def _try(readers: tuple[Reader, ...], before: np.ndarray, action: Any, seen: Seen) -> None:
    """Read the objectives of two equal transitions: a function for one alone fails here, not in a long run."""
    row = lambda x: np.stack([np.asarray(x)] * 2)  # noqa: E731
    transition = HostTransition(
        row(before),
        row(action),
        row(seen.reward),
        row(seen.observation),
        row(seen.terminated),
        row(seen.truncated),
        Infos([seen.info] * 2),
    )
    read_all(readers, transition)


def _check(backend: str, time_limit: Any, workers: Any, step_timeout: float, on_fault: str) -> None:
    if on_fault not in ON_FAULT:
        raise SettingsError(f"on_fault must be one of {', '.join(ON_FAULT)}, got {on_fault!r}.")
    if backend not in BACKENDS:
        raise SettingsError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}.")
    for name, value, least in (("time_limit", time_limit, 1), ("workers", workers, 0)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise SettingsError(f"{name} must be a whole number >= {least}, got {value!r}.")
    if not step_timeout > 0:
        raise SettingsError(f"step_timeout must be positive seconds, got {step_timeout!r}.")
