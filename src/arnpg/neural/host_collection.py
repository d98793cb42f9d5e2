"""Batches of environments that may break: one without a path that counts is thrown away, and collected anew."""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from arnpg.envs.faults import RETRIES, told_as
from arnpg.envs.host import AbstractHostBatch
from arnpg.errors import EnvironmentFault

from .dropped import counted
from .host_rollout import collect_on_host
from .networks import AbstractPolicy
from .rollout import Batch, Rollout
from .values import AbstractValue

__all__ = ["collect_counted", "nothing_whole", "paths_counted"]


def collect_counted(
    rollout: Rollout,
    live: AbstractHostBatch,
    policy: AbstractPolicy,
    key: PRNGKeyArray,
    values: AbstractValue | tuple[AbstractValue, ...],
) -> tuple[Batch, int, int]:
    """A batch with a path that counts, the rounds that it took, and the episodes that were lost meanwhile."""
    before = len(live.faults)
    for attempt in range(RETRIES + 1):
        own = jax.random.fold_in(key, attempt) if attempt else key
        batch = collect_on_host(rollout, live, policy, own)
        if paths_counted(values, batch).any():
            return batch, attempt + 1, len(live.faults) - before
    raise nothing_whole(live, f"{RETRIES + 1} batches in a row have no path whose episode was not lost")


def paths_counted(values: AbstractValue | tuple[AbstractValue, ...], batch: Batch) -> np.ndarray:
    """``(b,)``, whether a path counts for every objective."""
    parts = values if isinstance(values, tuple) else (values,)
    return np.all([np.asarray(counted(part, batch)) for part in parts], axis=0)


def nothing_whole(live: AbstractHostBatch, what: str) -> EnvironmentFault:
    """The last fault of an environment that breaks too often, with what came of it."""
    last = live.faults[-1]
    return told_as(last, f"{what}; the last fault: {last}")
