"""An inner loop without any MDP: the achievable region is the convex hull of given points.

A policy is a distribution over the vertices; the inner loop takes one exact mirror step with the KL divergence.
Methods cannot tell the difference, which is the point.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from arnpg.arrays import AnyArray, Scalar
from arnpg.inner_loop import AbstractInnerLoop, InnerInfo


class PolytopeInnerLoop(AbstractInnerLoop):
    """``argmax_x <G, V x> - alpha D(x || anchor)`` over the simplex, ``vertices`` the columns of ``V``."""

    float64: ClassVar[bool] = True

    vertices: Float[AnyArray, "m n"]
    regularisation: Scalar

    def start(self, key: PRNGKeyArray) -> tuple[Float[Array, " n"], None]:
        """Equal weights."""
        return jnp.full(self.vertices.shape[1], -jnp.log(self.vertices.shape[1]), float), None

    def improve(
        self, anchor: Float[Array, " n"], weights: Float[AnyArray, " m"], micro_steps: int | Int[Array, ""], work: None
    ) -> tuple[Float[Array, " n"], None, InnerInfo]:
        """The mirror step in closed form; more micro steps than one change nothing."""
        point = jax.nn.log_softmax(anchor + weights @ self.vertices / self.regularisation)
        kl = jnp.sum(jnp.exp(point) * (point - anchor))
        return point, work, InnerInfo(kl, -jnp.sum(jnp.exp(point) * point), jnp.zeros((), int))

    def evaluate(self, policy: Float[Array, " n"], work: None) -> tuple[Float[Array, " m"], None]:
        """``V x``."""
        return self.vertices @ jnp.exp(policy), work


def polytope(seed: int = 0, regularisation: float = 1.0) -> PolytopeInnerLoop:
    """Twelve points in the unit cube."""
    return PolytopeInnerLoop(np.random.default_rng(seed).uniform(size=(2, 12)), regularisation)
