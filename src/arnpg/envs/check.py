"""Is an environment fit for training? Everything that can be known of it in a few thousand steps with random actions.

Stricter than Gymnasium's checker, which warns where training would go wrong later.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from arnpg.errors import ArnpgError, EnvironmentFault, ObjectiveError, SettingsError

from .check_spaces import check_spaces
from .env import BoxActions, DiscreteActions
from .environment_source import Source, find_source, own_time_limit
from .envpool_host import EnvPoolEnvironment
from .envpool_source import PoolSource, find_pool
from .finding import Finding, failed, fine, note
from .gymnasium_host import GymnasiumEnvironment
from .host import AbstractHostEnvironment, HostStep
from .host_objectives import HostObjective
from .hosts import make_host
from .random_play import CURE, Path, first_difference, play, random_actions

__all__ = ["check_environment"]

ASSUMED_LIMIT = 1000
COUNT = 2  # side by side, so that one may be told from the other
FEW = 50  # steps that must differ under another seed
HUGE = 1e6


def check_environment(
    env: Any,
    objectives: Mapping[str, HostObjective] | None = None,
    *,
    time_limit: int | None = None,
    steps: int = 2000,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    step_timeout: float = 10.0,
) -> list[Finding]:
    """What is wrong with an environment, and what is worth knowing; the arguments are those of ``make_host``.

    Raises ``SettingsError`` where there is no such environment at all. The steps are made in another process, so that
    an environment that hangs or takes its process with it is a finding, too.
    """
    if steps < 10:
        raise SettingsError(f"steps must be at least 10, got {steps}.")
    pool = find_pool(env, options) if isinstance(env, str) else ""
    source = None if isinstance(pool, PoolSource) and pool.alone else find_source(env, options)
    limit, found = _limit(time_limit, source, pool)
    if source is not None:
        found += check_spaces(source, limit, seed)
    if any(finding.holds is False for finding in found):
        return found
    try:
        host = make_host(env, objectives, time_limit=limit, options=options)
    except (EnvironmentFault, ObjectiveError) as error:
        return [*found, failed("first step", str(error))]
    if isinstance(host, GymnasiumEnvironment):
        host = dataclasses.replace(host, workers=1, step_timeout=step_timeout)
    return found + _check_host(host, max(steps // COUNT, 5), seed)


def _limit(given: int | None, source: Source | None, pool: PoolSource | str) -> tuple[int, list[Finding]]:
    """The time limit to check with; one is assumed where there is none."""
    limit = given or (pool.time_limit if isinstance(pool, PoolSource) else None)
    if limit is None and source is not None:
        limit = source.time_limit or own_time_limit(source())
    if limit is not None:
        return limit, [fine("time limit", f"{limit} steps")]
    words = f"has none; checked with {ASSUMED_LIMIT} steps. Give one where you train."
    return ASSUMED_LIMIT, [note("time limit", words)]


def _check_host(host: AbstractHostEnvironment, steps: int, seed: int) -> list[Finding]:
    name = "EnvPool" if isinstance(host, EnvPoolEnvironment) else "Gymnasium"
    found = [
        fine("backend", f"{name}: observations of size {host.observation_size}, {_said(host.actions)}"),
        fine("objectives", ", ".join(host.names)),
    ]
    if isinstance(host.actions, BoxActions) and not np.isfinite([host.actions.low, host.actions.high]).all():
        found.append(note("actions", "have no bounds; policies begin within a few units of 0, so scale them to that"))
    actions = random_actions(host, COUNT, steps, seed)
    try:
        with host.open(COUNT, seed) as batch:
            start = time.perf_counter()
            path = play(batch, actions, seed)
            seconds = time.perf_counter() - start
            again, other = play(batch, actions, seed), play(batch, actions[:FEW], seed + 1)
            lost = batch.faults
    except ArnpgError as error:
        return [*found, failed("steps", str(error))]
    if lost:
        return [*found, failed("steps", str(lost[0]))]
    found.append(fine("steps", f"{COUNT * steps} with random actions, {COUNT * steps / seconds:,.0f} a second"))
    return [*found, *_episodes(host, path.steps), *_rewards(host, path.steps), *_determinism(path, again, other)]


def _said(actions: DiscreteActions | BoxActions) -> str:
    if isinstance(actions, DiscreteActions):
        return f"one of {actions.count} actions"
    return f"actions of size {actions.size} in [{actions.low:g}, {actions.high:g}]"


class _Lengths(NamedTuple):
    """Of the episodes that ended."""

    terminated: list[int]
    truncated: list[int]


def _lengths(path: list[HostStep]) -> _Lengths:
    found, running = _Lengths([], []), np.zeros(COUNT, int)
    for step in path:
        running += 1
        for index in range(COUNT):
            for flags, lengths in ((step.terminated, found.terminated), (step.truncated, found.truncated)):
                if flags[index]:
                    lengths.append(int(running[index]))
        running[step.terminated | step.truncated] = 0
    return found


def _episodes(host: AbstractHostEnvironment, path: list[HostStep]) -> list[Finding]:
    lengths = _lengths(path)
    every = lengths.terminated + lengths.truncated
    if not lengths.terminated:
        cut = max(every, default=host.time_limit)
        return [
            note(
                "episodes",
                f"none ended by itself in {COUNT * len(path)} steps; they are truncated after {cut}. A discounted "
                f"value is then cut off by a share of at most discount^{cut}, {0.99**cut:.1g} for .99.",
            )
        ]
    found = [
        fine(
            "episodes",
            f"{len(lengths.terminated)} terminated, {len(lengths.truncated)} truncated; "
            f"{min(every)} to {max(every)} steps, {np.mean(every):.1f} on average",
        )
    ]
    if max(every) == 1:
        found.append(note("episodes", "every one is over after one step; is that what you mean?"))
    return found


def _rewards(host: AbstractHostEnvironment, path: list[HostStep]) -> list[Finding]:
    rewards = np.concatenate([step.rewards for step in path]).astype(np.float64)
    found = []
    for index, name in enumerate(host.names):
        low, mean, high = (float(f(rewards[:, index])) + 0.0 for f in (np.min, np.mean, np.max))
        check = f"objective {name}"
        found.append(fine(check, f"{low:.4g} to {high:.4g} a step, {mean:.4g} on average"))
        if low == high and not any(step.terminated.any() for step in path):
            found.append(note(check, "is constant under random actions: nothing can be learnt from it at first"))
        elif max(abs(low), abs(high)) > HUGE:
            found.append(note(check, f"is beyond {HUGE:g}; divide it, so that the critics' numbers stay moderate"))
    return found


def _determinism(path: Path, again: Path, other: Path) -> list[Finding]:
    where = first_difference(path, again)
    if where is not None:
        return [
            failed(
                "same seed",
                f"another path: {where}. {CURE}",
            )
        ]
    found = [fine("same seed", "the same path, to the last bit")]
    if first_difference(path, other) is None:
        found.append(note("another seed", "the same path: nothing is random, or reset leaves its seed unused"))
    return found
