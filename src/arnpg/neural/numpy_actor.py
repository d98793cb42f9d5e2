"""A policy in NumPy: for stepping a few environments on the host, where a call of compiled code would cost more.

    actions = NumpyActor(policy)(observations, noise)

The same formulas as ``networks``; activations that NumPy has no one-liner for, and large batches, go through the
compiled policy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .networks import AbstractPolicy, GaussianPolicy
from .standardise import Standardised, standardised

__all__ = ["NumpyActor"]

ACTIVATIONS: dict[Any, Callable[[np.ndarray], np.ndarray]] = {
    jax.nn.relu: lambda x: np.maximum(x, 0.0),
    jnp.tanh: np.tanh,
}


class NumpyActor:
    """One policy, its parameters taken to the host; ``deterministic`` takes the most probable actions."""

    def __init__(self, policy: AbstractPolicy, deterministic: bool = False) -> None:
        """A policy of MLPs, with or without standardised observations."""
        self._whole, self._deterministic = policy, deterministic
        self._units = None
        if isinstance(policy, Standardised):
            self._units = (np.asarray(policy.shift), np.asarray(policy.scale))
            policy = policy.policy
        inner: Any = policy
        self._layers = [np.asarray(w) for w in inner.network.weights], [np.asarray(b) for b in inner.network.biases]
        self._activation = ACTIVATIONS.get(inner.network.activation)
        self._sd = np.exp(np.asarray(inner.log_sd)) if isinstance(policy, GaussianPolicy) else None

    def __call__(self, observations: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Actions for raw observations ``(b, o)``; ``noise`` is the policy's, ``(b,)`` or ``(b, d)``."""
        if self._activation is None:
            return np.asarray(_compiled(self._whole, observations, noise, self._deterministic))
        outputs = self._outputs(observations)
        if self._sd is not None:
            return outputs if self._deterministic else outputs + self._sd * noise
        if self._deterministic:
            return outputs.argmax(-1).astype(np.int32)
        below = np.exp(outputs - outputs.max(-1, keepdims=True)).cumsum(-1)
        return (noise[..., None] * below[..., -1:] >= below[..., :-1]).sum(-1, dtype=np.int32)

    def _outputs(self, observations: np.ndarray) -> np.ndarray:
        hidden = observations if self._units is None else standardised(observations, *self._units)
        weights, biases = self._layers
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            hidden = self._activation(hidden @ weight + bias)  # type: ignore[misc]
        return hidden @ weights[-1] + biases[-1]


@eqx.filter_jit
def _compiled(policy: AbstractPolicy, observations: Any, noise: Any, deterministic: bool) -> Any:
    distribution = policy(observations)
    return distribution.mode() if deterministic else distribution.sample(noise)
