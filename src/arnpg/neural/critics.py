"""The fit of m critics to their targets (Section 5.3): one pass of Adam over shuffled parts of the batch."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from arnpg.errors import SettingsError

from .minibatches import minibatches
from .networks import MLP, Critics

__all__ = ["AdamFit", "CriticState"]

# In units of the targets' own deviation: keeps a constant objective's scale away from zero.
LEAST_SCALE = 1e-3


class CriticState(eqx.Module):
    """Adam's moments, and whether the critics' units have been set."""

    moments: PyTree
    fitted: Array


class AdamFit(eqx.Module):
    """Least squares by Adam on minibatches, the rate falling linearly to 0 within each fit.

    Arguments: ``learning_rate``; rows of a ``minibatch``; passes (``epochs``) over the batch; ``unit_rate``, how fast
    the units of the outputs follow the targets' mean and deviation (the first fit sets them).  Targets of height
    50 and of
    height 1 are then equally easy, and one learning rate serves all objectives.
    """

    learning_rate: float = 3e-3
    minibatch: int = eqx.field(static=True, default=100)
    epochs: int = eqx.field(static=True, default=1)
    unit_rate: float = 0.3

    def __check_init__(self) -> None:
        for name in ("minibatch", "epochs"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, got {getattr(self, name)}; a fit needs a step.")
        if isinstance(self.learning_rate, int | float) and not 0 <= self.learning_rate < float("inf"):
            raise SettingsError(f"learning_rate must be a finite number >= 0, got {self.learning_rate}; 3e-3 is usual.")

    def start(self, critics: Critics) -> CriticState:
        """The optimiser before any fit."""
        networks: Any = critics.networks
        return CriticState(optax.scale_by_adam().init(networks), jnp.zeros((), bool))

    def __call__(
        self,
        critics: Critics,
        state: CriticState,
        observations: Float[Array, "n o"],
        targets: Float[Array, "n m"],
        key: PRNGKeyArray,
    ) -> tuple[Critics, CriticState]:
        """Critics nearer to the targets."""
        critics = self._follow(critics, targets, jnp.where(state.fitted, self.unit_rate, 1.0))
        scaled = (targets - critics.centre) / critics.scale
        rows = self._rows(key, observations.shape[0])
        rates = self.learning_rate * (1 - jnp.arange(rows.shape[0]) / rows.shape[0])

        def step(carry: tuple[MLP, PyTree], now: tuple[Array, Array]) -> tuple[tuple[MLP, PyTree], None]:
            networks, moments = carry
            chosen, rate = now
            slope = jax.grad(_loss)(networks, observations[chosen], scaled[chosen])
            change, moments = optax.scale_by_adam().update(slope, moments)
            return (jax.tree.map(lambda p, c: p - rate * c, networks, change), moments), None

        (networks, moments), _ = jax.lax.scan(step, (critics.networks, state.moments), (rows, rates))
        return eqx.tree_at(lambda c: c.networks, critics, networks), CriticState(moments, jnp.ones((), bool))

    def _rows(self, key: PRNGKeyArray, count: int) -> Array:
        """Row numbers of each minibatch, shuffled anew for each epoch."""
        return jnp.concatenate([minibatches(k, count, self.minibatch) for k in jax.random.split(key, self.epochs)])

    def _follow(self, critics: Critics, targets: Float[Array, "n m"], rate: Float[Array, ""]) -> Critics:
        """The same functions in units nearer to the targets' mean and deviation: only the last layer changes."""
        centre = critics.centre + rate * (targets.mean(0) - critics.centre)
        scale = critics.scale + rate * (jnp.maximum(targets.std(0), LEAST_SCALE) - critics.scale)
        networks, ratio = critics.networks, critics.scale / scale
        weight = networks.weights[-1] * ratio[:, None, None]
        bias = networks.biases[-1] * ratio[:, None] + ((critics.centre - centre) / scale)[:, None]
        networks = eqx.tree_at(lambda n: (n.weights[-1], n.biases[-1]), networks, (weight, bias))
        return Critics(networks, centre, scale)


def _loss(networks: MLP, observations: Float[Array, "n o"], targets: Float[Array, "n m"]) -> Float[Array, ""]:
    """Mean square error, summed over objectives: each network sees its own term only."""
    outputs = eqx.filter_vmap(lambda net: net(observations)[..., 0], out_axes=-1)(networks)
    return ((outputs - targets) ** 2).mean(0).sum()
