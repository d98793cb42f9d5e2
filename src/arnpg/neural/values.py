"""The value vector of a policy, estimated from each path of its batch, as the criterion means it (Section 5.3).

Gradients are discounted always; a criterion may speak of another notion of value.  Each objective has its own:
the paper's Acrobot limits are on ``PathTotal``, an episodic score is ``EpisodeTotal``, the theory's is ``Discounted``.
"""

from __future__ import annotations

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from arnpg.errors import SettingsError

from .rollout import Batch

__all__ = [
    "AbstractValue",
    "Discounted",
    "EpisodeTotal",
    "PathTotal",
    "episode_lengths",
    "first_episode",
    "path_totals",
]


class AbstractValue(eqx.Module):
    """The value of one objective."""

    @abc.abstractmethod
    def __call__(
        self, rewards: Float[Array, "t b"], bootstrap: Float[Array, "t b"], batch: Batch, discount: float
    ) -> Float[Array, " b"]:
        """One estimate of ``V`` a path, from the objective's rewards and the critic's where the path is cut."""


class PathTotal(AbstractValue):
    """Undiscounted total of a whole path, running on through resets: the paper's on Acrobot, of 500 steps."""

    def __call__(
        self, rewards: Float[Array, "t b"], bootstrap: Float[Array, "t b"], batch: Batch, discount: float
    ) -> Float[Array, " b"]:
        """``sum_t r_t``."""
        return rewards.sum(0)


class EpisodeTotal(AbstractValue):
    """Undiscounted total of an episode.

    Each path's first episode is taken, and no other: episodes that happen to end within a path are the short ones.
    """

    def __call__(
        self, rewards: Float[Array, "t b"], bootstrap: Float[Array, "t b"], batch: Batch, discount: float
    ) -> Float[Array, " b"]:
        """``sum_t r_t`` over the first episode."""
        return (rewards * first_episode(batch)).sum(0)


class Discounted(AbstractValue):
    """Discounted value from the initial distribution, the critic standing in for what a cut path leaves unseen.

    ``at`` is the discount, where it is not that of the advantages; the critic knows the latter's.
    """

    at: float | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if self.at is not None and not 0 <= self.at < 1:
            raise SettingsError(f"at must lie in [0, 1), got {self.at}; for undiscounted totals use EpisodeTotal.")

    def __call__(
        self, rewards: Float[Array, "t b"], bootstrap: Float[Array, "t b"], batch: Batch, discount: float
    ) -> Float[Array, " b"]:
        """``sum_t gamma^t (r_t + gamma V(s_{t+1}) [cut])`` over the first episode."""
        discount = discount if self.at is None else self.at
        weights = discount ** jnp.arange(rewards.shape[0], dtype=rewards.dtype)[:, None] * first_episode(batch)
        return (weights * (rewards + discount * bootstrap)).sum(0)


def path_totals(
    values: AbstractValue | tuple[AbstractValue, ...],
    bootstrap: Float[Array, "t b m"],
    batch: Batch,
    discount: float,
) -> Float[Array, "b m"]:
    """The estimates of all objectives; ``values`` is one notion for all of them, or a tuple with one each."""
    count = batch.rewards.shape[-1]
    parts = values if isinstance(values, tuple) else (values,) * count
    columns = [part(batch.rewards[..., i], bootstrap[..., i], batch, discount) for i, part in enumerate(parts)]
    return jnp.stack(columns, axis=-1)


def episode_lengths(batch: Batch) -> Float[Array, " b"]:
    """Steps of each path's first episode."""
    return first_episode(batch).sum(0)


def first_episode(batch: Batch) -> Float[Array, "t b"]:
    """1 in the first episode of each path, its last step included."""
    ended_before = jnp.cumsum(batch.over, axis=0) - batch.over
    return (ended_before == 0).astype(batch.rewards.dtype)
