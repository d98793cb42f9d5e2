"""Fisher-vector products ``F v``, ``F = E_s[ J(s)^T M(pi(.|s)) J(s) ]``, ``J = d parameters / d theta`` (Algorithm 1).

``linearised_product`` is for any policy: forward mode, the metric, reverse mode on a network linearised once.  It costs
four matrix products of the batch a hidden layer.  ``factored_product`` is for a softmax over few actions: with
``M = R R^T`` the Fisher matrix is a sum of squares of the gradients of ``R^T logits``, whose backward signals are kept,

    (F v) = E_s sum_j  u_j (d_l h_l)_j,     u_j = sum_l < d_l,j , h_l V_l >,

and two of the four products, those with the network's own weights, are paid once and not at each product.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .networks import MLP, AbstractDistribution, AbstractPolicy, CategoricalPolicy

__all__ = ["factored_product", "fisher_product", "linearised_product", "softmax_root"]

Vector = Float[Array, " p"]
Product = Callable[[Vector], Vector]

# Signals are stored per action but one: beyond this many actions reading them costs more than the products they save.
FACTORED_ACTIONS = 4


def fisher_product(policy: AbstractPolicy, observations: Float[Array, "n o"]) -> Product:
    """``v -> F v`` in the flattened parameters, by the cheaper of the two ways."""
    if isinstance(policy, CategoricalPolicy) and policy.network.biases[-1].shape[-1] <= FACTORED_ACTIONS:
        return factored_product(policy, observations)
    return linearised_product(policy, observations)


def linearised_product(policy: AbstractPolicy, observations: Float[Array, "n o"]) -> Product:
    """``v -> F v`` by forward and reverse mode."""
    flat, unravel = ravel_pytree(policy)

    def parameters(theta: Vector) -> AbstractDistribution:
        return unravel(theta)(observations)

    distribution, forward = jax.linearize(parameters, flat)
    backward = jax.linear_transpose(forward, flat)

    def product(vector: Vector) -> Vector:
        return backward(distribution.metric(forward(vector)))[0] / observations.shape[0]

    return product


def factored_product(policy: CategoricalPolicy, observations: Float[Array, "n o"]) -> Product:
    """``v -> F v`` from each layer's inputs and backward signals."""
    _, unravel = ravel_pytree(policy)
    root = softmax_root(jax.nn.softmax(policy.network(observations)))
    inputs, signals = _factors(policy.network, observations, root)
    # Transposed once and for good: left to itself the compiler transposes at every product.
    turned = jax.lax.optimization_barrier([h.T for h in inputs])

    def product(vector: Vector) -> Vector:
        tangent = unravel(vector).network
        slopes = [jnp.zeros(root.shape[1], vector.dtype) for _ in root]
        for h, d, weight, bias in zip(inputs, signals, tangent.weights, tangent.biases, strict=True):
            moved = h @ weight + bias
            # A product with ones: the compiler's own sum over the last axis takes eight times as long.
            slopes = [u + (d_j * moved) @ jnp.ones(d_j.shape[-1], d_j.dtype) for u, d_j in zip(slopes, d, strict=True)]
        weights, biases = [], []
        for h_t, d in zip(turned, signals, strict=True):
            signal = functools.reduce(jnp.add, [u[:, None] * d_j for u, d_j in zip(slopes, d, strict=True)])
            signal /= observations.shape[0]
            weights.append(h_t @ signal)
            biases.append(signal.sum(0))
        image = CategoricalPolicy(MLP(tuple(weights), tuple(biases), policy.network.activation))
        return ravel_pytree(image)[0]

    return product


def softmax_root(pi: Float[Array, "n a"]) -> Float[Array, "r n a"]:
    """``R`` with ``R R^T = diag pi - pi pi^T``, one column an action but the last: its Cholesky factor in closed form.

    With the tails ``s_j = pi_j + ... + pi_last``: ``R_jj = sqrt(pi_j s_{j+1} / s_j)`` and, below the diagonal,
    ``R_ij = -pi_i sqrt(pi_j / (s_j s_{j+1}))``.
    """
    tails = jnp.maximum(jnp.flip(jnp.cumsum(jnp.flip(pi, -1), -1), -1), jnp.finfo(pi.dtype).tiny ** 0.5)
    columns = []
    for j in range(pi.shape[-1] - 1):
        outer, inner = tails[..., j], tails[..., j + 1]
        below = -pi[..., j + 1 :] * jnp.sqrt(pi[..., j] / outer / inner)[..., None]
        diagonal = jnp.sqrt(pi[..., j] * inner / outer)[..., None]
        columns.append(jnp.concatenate([jnp.zeros_like(pi[..., :j]), diagonal, below], -1))
    return jnp.stack(columns)


def _factors(
    network: MLP, observations: Float[Array, "n o"], cotangents: Float[Array, "r n a"]
) -> tuple[list[Float[Array, "n i"]], list[list[Float[Array, "n h"]]]]:
    """Every layer's inputs, and for each ``j`` the gradients of ``<cotangents_j, outputs>`` in its pre-activations."""
    inputs, pullbacks = [observations], []
    for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        hidden, pullback = jax.vjp(network.activation, inputs[-1] @ weight + bias)
        inputs.append(hidden)
        pullbacks.append(pullback)
    signals = [list(cotangents)]
    for weight, pullback in zip(network.weights[:0:-1], reversed(pullbacks), strict=True):
        signals.append([pullback(d_j @ weight.T)[0] for d_j in signals[-1]])
    return inputs, signals[::-1]
