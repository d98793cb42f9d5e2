"""Multi-layer perceptrons: softmax and diagonal Gaussian policies, and critics for m objectives (Section 5.3).

A policy maps observations to a distribution.  A distribution is a pytree of its free parameters (logits; mean and log
standard deviation), so that it can be differentiated, and knows the Fisher metric in these parameters:

    F(theta) = E_s[ J(s)^T  M(pi(.|s))  J(s) ],   J = d parameters / d theta,   M = E_a[ grad log pi grad log pi^T ].

Every array of a network is a parameter; settings are static.  Leading axes of observations are free.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from arnpg.envs.env import BoxActions, DiscreteActions
from arnpg.errors import SettingsError

__all__ = [
    "AbstractDistribution",
    "AbstractPolicy",
    "Categorical",
    "CategoricalPolicy",
    "Critics",
    "DiagonalGaussian",
    "GaussianPolicy",
    "MLP",
    "Network",
    "fan_in_uniform",
    "make_policy",
    "orthogonal",
]

Initialiser = Callable[[PRNGKeyArray, tuple[int, int]], tuple[Array, Array]]


def fan_in_uniform(key: PRNGKeyArray, shape: tuple[int, int]) -> tuple[Float[Array, "i o"], Float[Array, " o"]]:
    """The authors' (PyTorch's default) initialisation: weights and biases uniform on ``+-1/sqrt(inputs)``."""
    bound = 1 / math.sqrt(shape[0])
    first, second = jax.random.split(key)
    weight = jax.random.uniform(first, shape, jnp.float32, -bound, bound)
    return weight, jax.random.uniform(second, shape[1:], jnp.float32, -bound, bound)


def orthogonal(key: PRNGKeyArray, shape: tuple[int, int]) -> tuple[Float[Array, "i o"], Float[Array, " o"]]:
    """Orthogonal weights of gain ``sqrt(2)``, biases zero."""
    weight = jax.nn.initializers.orthogonal(math.sqrt(2))(key, shape, jnp.float32)
    return weight, jnp.zeros(shape[1:], jnp.float32)


class MLP(eqx.Module):
    """``x -> W_L f(... f(W_1 x + b_1) ...) + b_L``, weights stored inputs by outputs."""

    weights: tuple[Float[Array, ...], ...]
    biases: tuple[Float[Array, ...], ...]
    activation: Callable[[Array], Array] = eqx.field(static=True)

    def __call__(self, inputs: Float[Array, "*batch i"]) -> Float[Array, "*batch o"]:
        """The network's outputs."""
        return self.features(inputs) @ self.weights[-1] + self.biases[-1]

    def features(self, inputs: Float[Array, "*batch i"]) -> Float[Array, "*batch h"]:
        """What the last layer is linear in."""
        hidden = inputs
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = self.activation(hidden @ weight + bias)
        return hidden


class Network(eqx.Module):
    """Settings of an MLP: hidden sizes, activation, initialisation, scale of the last layer's initial weights.

    ``log_sd`` is for policies with continuous actions, the log standard deviation that they begin with.
    """

    hidden: tuple[int, ...] = eqx.field(static=True, default=(128, 128))
    activation: Callable[[Array], Array] = eqx.field(static=True, default=jax.nn.relu)
    initialise: Initialiser = eqx.field(static=True, default=fan_in_uniform)
    output_scale: float = eqx.field(static=True, default=1.0)
    log_sd: float = eqx.field(static=True, default=-0.5)

    def __check_init__(self) -> None:
        if any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in self.hidden):
            raise SettingsError(f"hidden must hold whole numbers >= 1, got {self.hidden}; () is a linear network.")
        if not self.output_scale >= 0:
            raise SettingsError(
                f"output_scale must be at least 0, got {self.output_scale}; 1 leaves the weights as drawn."
            )

    def build(self, key: PRNGKeyArray, inputs: int, outputs: int) -> MLP:
        """Draw the parameters."""
        sizes = (inputs, *self.hidden, outputs)
        shapes = list(zip(sizes[:-1], sizes[1:], strict=True))
        layers = [self.initialise(k, s) for k, s in zip(jax.random.split(key, len(shapes)), shapes, strict=True)]
        weights, biases = (list(part) for part in zip(*layers, strict=True))
        weights[-1], biases[-1] = weights[-1] * self.output_scale, biases[-1] * self.output_scale
        return MLP(tuple(weights), tuple(biases), self.activation)


class AbstractDistribution(eqx.Module):
    """A distribution of actions as a pytree of its parameters; leading axes are batch axes."""

    @abc.abstractmethod
    def sample(self, noise: Array) -> Array:
        """The action that a draw of the policy's ``noise`` stands for."""

    @abc.abstractmethod
    def mode(self) -> Array:
        """The most probable action."""

    @abc.abstractmethod
    def log_prob(self, action: Array) -> Float[Array, "*batch"]:
        """``log pi(a)``."""

    @abc.abstractmethod
    def kl(self, other: AbstractDistribution) -> Float[Array, "*batch"]:
        """``KL(self || other)``; the other is of the same family."""

    @abc.abstractmethod
    def entropy(self) -> Float[Array, "*batch"]:
        """``-E log pi(a)``."""

    @abc.abstractmethod
    def metric(self, tangent: AbstractDistribution) -> AbstractDistribution:
        """``M u``, the Fisher matrix in the parameters times a tangent of the same structure."""


class Categorical(AbstractDistribution):
    """``pi(a) ~ exp(logits[a])``."""

    logits: Float[Array, "*batch a"]

    def sample(self, noise: Float[Array, "*batch"]) -> Int[Array, "*batch"]:
        """Inverse of the distribution function on one uniform number: far cheaper than one Gumbel an action."""
        masses = jnp.exp(self.logits - self.logits.max(-1, keepdims=True))
        # A sum under a mask fuses with its neighbours; ``cumsum`` is a kernel of its own, and the slowest of a rollout.
        cumulated = jnp.where(jnp.tri(masses.shape[-1], dtype=bool), masses[..., None, :], 0).sum(-1)
        below = noise[..., None] * cumulated[..., -1:] >= cumulated[..., :-1]
        return below.sum(-1, dtype=jnp.int32)

    def mode(self) -> Int[Array, "*batch"]:
        """The largest logit's index."""
        return self.logits.argmax(-1).astype(jnp.int32)

    def log_prob(self, action: Int[Array, "*batch"]) -> Float[Array, "*batch"]:
        """``log pi(a)``, selected by a comparison, whose derivative is dense and needs no scatter."""
        chosen = action[..., None] == jnp.arange(self.logits.shape[-1])
        return jnp.where(chosen, jax.nn.log_softmax(self.logits), 0).sum(-1)

    def kl(self, other: Categorical) -> Float[Array, "*batch"]:
        """``sum_a pi(a) log(pi(a) / other(a))``."""
        log_pi = jax.nn.log_softmax(self.logits)
        return (jnp.exp(log_pi) * (log_pi - jax.nn.log_softmax(other.logits))).sum(-1)

    def entropy(self) -> Float[Array, "*batch"]:
        """``-sum_a pi(a) log pi(a)``."""
        log_pi = jax.nn.log_softmax(self.logits)
        return -(jnp.exp(log_pi) * log_pi).sum(-1)

    def metric(self, tangent: Categorical) -> Categorical:
        """``(diag pi - pi pi^T) u``."""
        pi, u = jax.nn.softmax(self.logits), tangent.logits
        return Categorical(pi * (u - (pi * u).sum(-1, keepdims=True)))


class DiagonalGaussian(AbstractDistribution):
    """Independent normal components."""

    mean: Float[Array, "*batch d"]
    log_sd: Float[Array, "*batch d"]

    def sample(self, noise: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        """``mean + sd * noise``."""
        return self.mean + jnp.exp(self.log_sd) * noise

    def mode(self) -> Float[Array, "*batch d"]:
        """The mean."""
        return self.mean

    def log_prob(self, action: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """``-sum ((a - mean)^2 / (2 sd^2) + log sd + log(2 pi) / 2)``."""
        score = (action - self.mean) * jnp.exp(-self.log_sd)
        return -(0.5 * score**2 + self.log_sd + 0.5 * math.log(2 * math.pi)).sum(-1)

    def kl(self, other: DiagonalGaussian) -> Float[Array, "*batch"]:
        """``sum log(sd' / sd) + (sd^2 + (mean - mean')^2) / (2 sd'^2) - 1/2``."""
        ratio = jnp.exp(2 * (self.log_sd - other.log_sd))
        shift = ((self.mean - other.mean) * jnp.exp(-other.log_sd)) ** 2
        return (other.log_sd - self.log_sd + 0.5 * (ratio + shift - 1)).sum(-1)

    def entropy(self) -> Float[Array, "*batch"]:
        """``sum log sd + log(2 pi e) / 2``."""
        return (self.log_sd + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)

    def metric(self, tangent: DiagonalGaussian) -> DiagonalGaussian:
        """``u / sd^2`` for means, ``2 u`` for log standard deviations."""
        return DiagonalGaussian(tangent.mean * jnp.exp(-2 * self.log_sd), 2 * tangent.log_sd)


Distribution = TypeVar("Distribution", bound=AbstractDistribution)


class AbstractPolicy(eqx.Module, Generic[Distribution]):
    """Observations to distributions of actions; every array leaf is a parameter."""

    @abc.abstractmethod
    def __call__(self, observations: Float[Array, "*batch o"]) -> Distribution:
        """``pi(.|s)``."""

    @abc.abstractmethod
    def noise(self, key: PRNGKeyArray, shape: Sequence[int]) -> Array:
        """What ``sample`` turns into actions, drawn for a whole batch at once: cheaper than inside the time loop."""


class CategoricalPolicy(AbstractPolicy[Categorical]):
    """Softmax over an MLP's outputs."""

    network: MLP

    def __call__(self, observations: Float[Array, "*batch o"]) -> Categorical:
        """``pi(.|s) ~ exp(network(s))``."""
        return Categorical(self.network(observations))

    def noise(self, key: PRNGKeyArray, shape: Sequence[int]) -> Float[Array, "*batch"]:
        """Uniform numbers, one an action."""
        return jax.random.uniform(key, shape, jnp.float32)


class GaussianPolicy(AbstractPolicy[DiagonalGaussian]):
    """Mean from an MLP, log standard deviation the same in every state."""

    network: MLP
    log_sd: Float[Array, " d"]

    def __call__(self, observations: Float[Array, "*batch o"]) -> DiagonalGaussian:
        """``pi(.|s) = N(network(s), exp(2 log_sd))``."""
        mean = self.network(observations)
        return DiagonalGaussian(mean, jnp.broadcast_to(self.log_sd, mean.shape))

    def noise(self, key: PRNGKeyArray, shape: Sequence[int]) -> Float[Array, "*batch d"]:
        """Standard normal numbers, one an action component."""
        return jax.random.normal(key, (*shape, self.log_sd.shape[0]), jnp.float32)


def make_policy(
    key: PRNGKeyArray,
    network: Network,
    observation_size: int,
    actions: DiscreteActions | BoxActions,
) -> CategoricalPolicy | GaussianPolicy:
    """The policy for a space of actions, its parameters drawn with ``key``."""
    if isinstance(actions, DiscreteActions):
        return CategoricalPolicy(network.build(key, observation_size, actions.count))
    log_sd = jnp.full(actions.size, network.log_sd, jnp.float32)
    return GaussianPolicy(network.build(key, observation_size, actions.size), log_sd)


class Critics(eqx.Module):
    """One value network for each objective, ``V_i(s)``; the parameters carry a leading axis ``m``.

    ``centre`` and ``scale`` put the networks' outputs into the objectives' units; they are no parameters of the fit.
    """

    networks: MLP
    centre: Float[Array, " m"]
    scale: Float[Array, " m"]

    @classmethod
    def build(cls, key: PRNGKeyArray, network: Network, observation_size: int, count: int) -> Critics:
        """Critics for ``count`` objectives, in units of one until they are fitted."""
        networks = eqx.filter_vmap(lambda k: network.build(k, observation_size, 1))(jax.random.split(key, count))
        return cls(networks, jnp.zeros(count, jnp.float32), jnp.ones(count, jnp.float32))

    def __call__(self, observations: Float[Array, "*batch o"]) -> Float[Array, "*batch m"]:
        """``V_1..m(s)``."""
        outputs = eqx.filter_vmap(lambda net: net(observations)[..., 0], out_axes=-1)(self.networks)
        return self.centre + self.scale * outputs
