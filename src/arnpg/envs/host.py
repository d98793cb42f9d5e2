"""Environments that live on the host: many at once, NumPy arrays, terminated and truncated apart.

A description (``AbstractHostEnvironment``) is static and hashable: names of the objectives, sizes, time limit. ``open``
makes live environments of it (``AbstractHostBatch``). Each objective is returned as it is named: a cost is a positive
number here, as in ``arnpg.envs.env``, and it is the criterion that turns it round.
"""

from __future__ import annotations

import abc
from types import TracebackType
from typing import NamedTuple, Self

import equinox as eqx
import numpy as np

from arnpg.errors import EnvironmentFault, SettingsError

from .env import BoxActions, DiscreteActions

__all__ = ["AbstractHostBatch", "AbstractHostEnvironment", "HostStep", "check_opening", "environment_seeds"]


class HostStep(NamedTuple):
    """One step of ``b`` environments.

    Attributes:
        rewards: ``(b, m)`` float32, the objectives in the order of ``names``.
        next_observations: ``(b, o)`` float32, what really followed; where an episode is over its final observation.
        terminated: ``(b,)``, whether the episode came to an end of its own.
        truncated: ``(b,)``, whether it was cut by the time limit; never together with ``terminated``, which wins.
        observations: ``(b, o)`` float32, what to act upon next: after an episode the first one of the next.
        dropped: ``(b,)``, rows that are no steps, none where all are: the episode was lost there, and is marked as
            truncated with rewards 0 at the observation that was acted upon. Learn nothing from these rows.
    """

    rewards: np.ndarray
    next_observations: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    observations: np.ndarray
    dropped: np.ndarray | None = None


class AbstractHostBatch(abc.ABC):
    """``count`` live environments; a context manager that closes them.

    Attributes:
        count: how many.
        faults: of the episodes that were lost so far, in order.
    """

    count: int
    faults: list[EnvironmentFault]

    @abc.abstractmethod
    def reset(self, seed: int | None = None) -> np.ndarray:
        """Begin a fresh episode everywhere; observations ``(b, o)``.

        With a ``seed`` all randomness from here on is that of environments newly opened with it.
        """

    @abc.abstractmethod
    def step(self, actions: np.ndarray) -> HostStep:
        """Act everywhere: whole numbers ``(b,)`` or reals ``(b, d)``, which are clipped to the box.

        Raises ``EnvironmentFault`` where an environment breaks its word.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Release the environments; a second time does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AbstractHostEnvironment(eqx.Module):
    """What is known of an environment before any is made."""

    names: eqx.AbstractVar[tuple[str, ...]]
    observation_size: eqx.AbstractVar[int]
    actions: eqx.AbstractVar[DiscreteActions | BoxActions]
    time_limit: eqx.AbstractVar[int]
    label: eqx.AbstractVar[str]

    @property
    @abc.abstractmethod
    def may_drop(self) -> bool:
        """Whether an episode may be lost without an error, and rows of a batch be no steps."""

    @abc.abstractmethod
    def open(self, count: int, seed: int) -> AbstractHostBatch:
        """Make ``count`` of them; the same seed, the same episodes under the same actions."""


def check_opening(count: int, seed: int) -> None:
    """Refuse what is no number of environments, and what is no seed."""
    for name, value, least in (("count", count, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise SettingsError(f"{name} must be a whole number >= {least}, got {value!r}.")


def environment_seeds(seed: int, count: int) -> list[int]:
    """A seed below 2^31 for each environment of a run; that of environment ``i`` does not depend on ``count``."""
    return [int(np.random.SeedSequence((seed, i)).generate_state(1)[0] >> 1) for i in range(count)]
