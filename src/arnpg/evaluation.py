"""What a trained policy is worth on fresh episodes: mean, interval, quantiles, and how often the limits are kept.

An episode here is what the objective's notion of value speaks of: for path totals a whole path, which runs on through
resets (Section 5.3: 500 steps), for episode totals and discounted values one episode.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from arnpg.envs.env import AbstractEnvironment
from arnpg.envs.faults import RETRIES
from arnpg.envs.find import Environment
from arnpg.envs.host import AbstractHostEnvironment
from arnpg.errors import SettingsError
from arnpg.intervals import Interval, interval
from arnpg.neural.actor import Greedy
from arnpg.neural.host_collection import nothing_whole, paths_counted
from arnpg.neural.host_rollout import collect_on_host
from arnpg.neural.networks import AbstractPolicy
from arnpg.neural.rollout import Batch, Rollout
from arnpg.neural.values import AbstractValue, PathTotal, episode_lengths, path_totals

__all__ = ["Evaluation", "Notion", "evaluation", "play"]

QUANTILES = (0.05, 0.5, 0.95)
SIDE_BY_SIDE = 8  # environments of the host


class Notion(eqx.Module):
    """How episodes are valued: one notion for each objective, the steps of a path, the discount."""

    values: tuple[AbstractValue, ...]
    path_steps: int = eqx.field(static=True)
    discount: float = eqx.field(static=True)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Totals of fresh episodes.

    Attributes:
        names: of the objectives.
        labels: of the limits, such as ``swing1 <= 50``.
        totals: one row an episode, ``(policies, episodes, m)``, in the user's units and sign.
        slack: how far each limit is kept, negative where it is broken, ``(policies, episodes, c)``.
        lengths: steps of each episode, ``(policies, episodes)``; the mean where a path holds several.
        deterministic: whether the most probable actions were taken.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    totals: np.ndarray
    slack: np.ndarray
    lengths: np.ndarray
    deterministic: bool

    @property
    def values(self) -> dict[str, Interval]:
        """Mean and 95 % interval of each objective: over policies where there are several, else over episodes."""
        several = len(self.totals) > 1
        samples = self.totals.mean(axis=1) if several else self.totals[0]
        return {name: interval(samples[:, i]) for i, name in enumerate(self.names)}

    @property
    def quantiles(self) -> dict[str, tuple[float, ...]]:
        """The 5 %, 50 % and 95 % quantiles of each objective over all episodes."""
        flat = self.totals.reshape(-1, len(self.names))
        return {name: tuple(np.quantile(flat[:, i], QUANTILES).tolist()) for i, name in enumerate(self.names)}

    @property
    def within(self) -> dict[str, float]:
        """The share of episodes that keep each limit."""
        return {label: float((self.slack[..., i] >= 0).mean()) for i, label in enumerate(self.labels)}

    @property
    def kept(self) -> np.ndarray:
        """Whether each policy keeps all limits in the mean over its episodes."""
        return np.asarray((self.slack.mean(axis=1) >= 0).all(axis=-1))

    def rows(self) -> list[tuple[str, ...]]:
        """Name, mean with interval, quantiles, share of episodes within each limit on it."""
        found = []
        for name, value in self.values.items():
            quantiles = " / ".join(f"{q:.4g}" for q in self.quantiles[name])
            limits = ", ".join(
                f"{share:.0%} {label.removeprefix(name).strip()}"
                for label, share in self.within.items()
                if label.rsplit(" ", 2)[0] == name
            )
            found.append((name, str(value), quantiles, limits))
        return found

    def summary(self) -> str:
        """A table for a terminal."""
        policies, episodes = self.totals.shape[:2]
        how = "most probable actions" if self.deterministic else "sampled actions"
        count = f"{policies} policies, {episodes} episodes each" if policies > 1 else f"{episodes} episodes"
        header = ("objective", "mean [95 %]", "5 / 50 / 95 %", "episodes within")
        table = [header, *self.rows()]
        widths = [max(len(row[i]) for row in table) for i in range(4)]
        lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]
        return "\n".join([f"{count}, {how}, {self.lengths.mean():.0f} steps an episode", *lines])


def play(
    env: Environment, policy: AbstractPolicy, notion: Notion, episodes: int, seed: int, deterministic: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Totals ``(episodes, m)`` and lengths ``(episodes,)`` of one policy."""
    if isinstance(episodes, bool) or not isinstance(episodes, int) or episodes < 1:
        raise SettingsError(f"episodes must be a whole number >= 1, got {episodes!r}.")
    # Only a path total ends before the episode does.
    steps = max(env.time_limit if _by_episode(notion) else notion.path_steps, 1)
    if isinstance(env, AbstractHostEnvironment):
        return _played_on_host(env, policy, notion, episodes, steps, seed, deterministic)
    actor = Greedy(policy) if deterministic else policy
    totals, lengths = _played(env, actor, notion, Rollout(episodes, steps), jax.random.key(seed))
    return np.asarray(totals), np.asarray(lengths)


def _played_on_host(
    env: AbstractHostEnvironment,
    policy: AbstractPolicy,
    notion: Notion,
    episodes: int,
    steps: int,
    seed: int,
    deterministic: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Round by round; a round ends with the longest of its episodes, and one that was lost is played anew."""
    rollout = Rollout(min(episodes, SIDE_BY_SIDE), steps)
    totals, lengths, whole, index = [], [], _by_episode(notion), 0
    with env.open(rollout.paths, seed) as live:
        while sum(map(len, totals)) < episodes:
            key, index = jax.random.fold_in(jax.random.key(seed), index), index + 1
            batch = collect_on_host(rollout, live, policy, key, deterministic=deterministic, first_episodes=whole)
            kept, nothing = paths_counted(notion.values, batch), jnp.zeros_like(batch.rewards)
            totals.append(np.asarray(path_totals(notion.values, nothing, batch, notion.discount))[kept])
            lengths.append(np.asarray(_lengths(notion, batch))[kept])
            if len(live.faults) > episodes + RETRIES:
                raise nothing_whole(live, f"{len(live.faults)} episodes were lost, more than were to be played")
    return np.concatenate(totals)[:episodes], np.concatenate(lengths)[:episodes]


@eqx.filter_jit
def _played(
    env: AbstractEnvironment, policy: AbstractPolicy, notion: Notion, rollout: Rollout, key: PRNGKeyArray
) -> tuple[Float[Array, "b m"], Float[Array, " b"]]:
    batch = rollout.collect(env, policy, key)
    totals = path_totals(notion.values, jnp.zeros_like(batch.rewards), batch, notion.discount)
    return totals, _lengths(notion, batch)


def _by_episode(notion: Notion) -> bool:
    return not any(isinstance(value, PathTotal) for value in notion.values)


def _lengths(notion: Notion, batch: Batch) -> Float[Array, " b"]:
    """Steps of the first episode, or the mean over a path's where all of it counts."""
    if _by_episode(notion):
        return episode_lengths(batch)
    return batch.over.shape[0] / (batch.over.sum(0) + 1 - batch.over[-1])


def evaluation(
    env: Environment,
    policies: list[AbstractPolicy],
    notion: Notion,
    *,
    episodes: int,
    seed: int,
    deterministic: bool,
    labels: tuple[str, ...] = (),
    limits: tuple[Any, Any] | None = None,
) -> Evaluation:
    """Play every policy; ``limits`` are rows and thresholds of the bound criterion."""
    played = [play(env, policy, notion, episodes, seed + i, deterministic) for i, policy in enumerate(policies)]
    totals, lengths = (np.stack(part).astype(float) for part in zip(*played, strict=True))
    rows, thresholds = limits if limits is not None else (np.zeros((0, totals.shape[-1])), np.zeros(0))
    slack = totals @ np.asarray(rows).T - np.asarray(thresholds)
    return Evaluation(env.names, labels, totals, slack, lengths, deterministic)
