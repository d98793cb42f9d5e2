"""Advantages and critics' targets for a vector of objectives, from paths with resets inside them.

With the value ``V(s_{t+1})`` of the state that really followed (before any reset), for every objective alike,

    delta_t = r_t + gamma * V(s_{t+1}) * [s_{t+1} is not terminal] - V(s_t)
    A_t     = delta_t + gamma * lambda * A_{t+1} * [no reset between t and t+1],       target_t = A_t + V(s_t).

``lambda = 1`` is the Monte-Carlo return less the baseline, with a bootstrap where the future is unseen: at a truncation
and at the path's end.  The authors' scripts use neither that bootstrap nor the stop at a reset; ``MonteCarlo`` has both
as settings (Section 5.3, advantages of Acrobot).
"""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from arnpg.errors import SettingsError

from .networks import Critics
from .rollout import Batch

__all__ = ["AbstractAdvantages", "GeneralisedAdvantages", "MonteCarlo", "discounted_sums", "path_values"]


def discounted_sums(terms: Float[Array, "t b *m"], factors: Float[Array, "t b"]) -> Float[Array, "t b *m"]:
    """``y_t = terms_t + factors_t * y_{t+1}`` with ``y_T = 0``, for one objective or several.

    A factor is the discount, or 0 where nothing of what follows belongs to ``t``.
    """
    factors = factors.reshape(factors.shape + (1,) * (terms.ndim - factors.ndim))

    def body(later: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        total = now[0] + now[1] * later
        return total, total

    return jax.lax.scan(body, jnp.zeros_like(terms[0]), (terms, factors), reverse=True)[1]


def path_values(critics: Critics, batch: Batch, cuts: int) -> tuple[Float[Array, "t b m"], Float[Array, "t b m"]]:
    """``V(s_t)``, and the bootstrap: ``V(s_{t+1})`` at the steps where the path is cut, 0 at all others.

    A path is cut at most ``cuts`` times, so that the critics see few more states than the batch has.
    """
    values = critics(batch.observations)
    steps, paths = batch.cut.shape
    slots = min(cuts, steps)
    # The cuts of a path come first in a stable order; slots without a cut add nothing.
    times = jnp.argsort(~batch.cut, axis=0, stable=True)[:slots]
    columns = jnp.arange(paths)
    found = jnp.where(batch.cut[times, columns, None], critics(batch.next_observations[times, columns]), 0)
    return values, jnp.zeros_like(values).at[times, columns].add(found)


class AbstractAdvantages(eqx.Module):
    """Advantages of m objectives, and what their critics are to be fitted to."""

    @abc.abstractmethod
    def __call__(
        self, batch: Batch, values: Float[Array, "t b m"], bootstrap: Float[Array, "t b m"], discount: float
    ) -> tuple[Float[Array, "t b m"], Float[Array, "t b m"]]:
        """Advantages and targets; ``values`` and ``bootstrap`` are those of ``path_values``."""


class MonteCarlo(AbstractAdvantages):
    """Discounted returns less the baseline.

    Arguments: ``bootstrap``, to add ``gamma V`` of the state where the path was cut (the scripts: no);
    ``through_resets``, to let the return run on into the next episode of the path (the scripts: yes).
    """

    bootstrap: bool = eqx.field(static=True, default=True)
    through_resets: bool = eqx.field(static=True, default=False)

    def __call__(
        self, batch: Batch, values: Float[Array, "t b m"], bootstrap: Float[Array, "t b m"], discount: float
    ) -> tuple[Float[Array, "t b m"], Float[Array, "t b m"]]:
        """``A_t = sum_k gamma^k r_{t+k} (+ gamma^n V(s_{t+n})) - V(s_t)``, targets the returns."""
        rewards = batch.rewards + discount * bootstrap if self.bootstrap else batch.rewards
        joined = jnp.ones_like(batch.over) if self.through_resets else ~batch.over
        returns = discounted_sums(rewards, discount * joined.astype(rewards.dtype))
        return returns - values, returns


class GeneralisedAdvantages(AbstractAdvantages):
    """GAE: exponentially weighted temporal differences, ``decay`` the lambda of the formula above."""

    decay: float = eqx.field(static=True, default=0.95)

    def __check_init__(self) -> None:
        if not 0 <= self.decay <= 1:
            raise SettingsError(f"decay must lie in [0, 1], got {self.decay}; 1 is Monte-Carlo, .95 is usual.")

    def __call__(
        self, batch: Batch, values: Float[Array, "t b m"], bootstrap: Float[Array, "t b m"], discount: float
    ) -> tuple[Float[Array, "t b m"], Float[Array, "t b m"]]:
        """``A_t = sum_k (gamma lambda)^k delta_{t+k}``, targets ``A_t + V(s_t)``."""
        joined: Bool[Array, "t b"] = ~batch.over
        # Inside an episode the next state of one step is the present state of the following one.
        later = jnp.where(joined[..., None], jnp.roll(values, -1, axis=0).at[-1].set(0), 0) + bootstrap
        deltas = batch.rewards + discount * later - values
        advantages = discounted_sums(deltas, discount * self.decay * joined.astype(deltas.dtype))
        return advantages, advantages + values
