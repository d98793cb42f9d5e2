"""The natural policy gradient step of Algorithm 1 for any network, by conjugate gradients (TRPO's recipe).

    g = E[ A(s,a) grad log pi(a|s) ],    F = E[ J^T M J ],    x = (F + damping)^-1 g

``TrustRegion`` scales ``x`` to the largest step whose quadratic KL is ``max_kl`` and searches along it backwards;
``FixedStep`` is the paper's update ``theta + eta F^+ grad V``, equation (6), with ``grad V = g / (1 - gamma)``.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from arnpg.errors import SettingsError
from arnpg.inner_loop import require_positive

from .fisher import fisher_product
from .networks import AbstractDistribution, AbstractPolicy
from .update import AbstractUpdate, Samples, UpdateInfo

__all__ = ["FixedStep", "NaturalGradient", "TrustRegion", "conjugate_gradients"]

Vector = Float[Array, " p"]


def conjugate_gradients(
    product: Callable[[Vector], Vector], target: Vector, iterations: int
) -> tuple[Vector, Float[Array, ""]]:
    """``x`` with ``product(x) ~ target`` after a number of iterations from zero, and ``<x, product(x)>``."""

    def body(carry: tuple[Vector, Vector, Vector, Array], _: None) -> tuple[tuple[Vector, Vector, Vector, Array], None]:
        x, residual, direction, square = carry
        image = product(direction)
        step = jnp.where(square > 0, square / jnp.vdot(direction, image), 0)
        x, residual = x + step * direction, residual - step * image
        new_square = jnp.vdot(residual, residual)
        direction = residual + jnp.where(square > 0, new_square / square, 0) * direction
        return (x, residual, direction, new_square), None

    start = (jnp.zeros_like(target), target, target, jnp.vdot(target, target))
    x, residual, _, _ = jax.lax.scan(body, start, None, length=iterations)[0]
    return x, jnp.vdot(x, target - residual)


class NaturalGradient(eqx.Module):
    """How the direction is computed.

    Arguments: conjugate-gradient ``iterations`` (in float32 more than 10 make it worse), ``damping`` added to the
    Fisher matrix, and ``share``, the part of the batch the Fisher matrix is taken over, chosen at random: every
    fifth row of a (time, path) batch can be two whole paths, which gave steps of 3 to 18 times the KL asked for.
    """

    iterations: int = eqx.field(static=True, default=10)
    damping: float = eqx.field(static=True, default=1e-3)
    share: float = eqx.field(static=True, default=1.0)

    def __check_init__(self) -> None:
        if self.iterations < 1:
            raise SettingsError(f"iterations must be at least 1, got {self.iterations}; the paper's runs use 10.")
        if not self.damping >= 0:
            raise SettingsError(f"damping must be at least 0, got {self.damping}; the paper's runs use 1e-3.")
        if not 0 < self.share <= 1:
            raise SettingsError(f"share must lie in (0, 1], got {self.share}; 1 is the whole batch, .2 a fifth.")

    def direction(
        self, policy: AbstractPolicy, gradient: Vector, observations: Float[Array, "n o"], key: PRNGKeyArray
    ) -> tuple[Vector, Float[Array, ""]]:
        """``x = (F + damping)^-1 g`` and the curvature ``x (F + damping) x``."""
        if self.share < 1:
            count = observations.shape[0]
            chosen = jax.random.permutation(key, count)[: max(round(self.share * count), 1)]
            observations = observations[chosen]
        fisher = fisher_product(policy, observations)

        def damped(vector: Vector) -> Vector:
            return fisher(vector) + self.damping * vector

        return conjugate_gradients(damped, gradient, self.iterations)


class FixedStep(AbstractUpdate):
    """``theta' = theta + eta / (1 - gamma) * x``: the paper's closed form, without normalisation or search."""

    step_size: float
    natural_gradient: NaturalGradient = NaturalGradient()

    def start(self, policy: AbstractPolicy) -> None:
        """Nothing is remembered."""

    def __call__(
        self,
        policy: AbstractPolicy,
        anchor: AbstractPolicy,
        state: None,
        samples: Samples,
        discount: float,
        key: PRNGKeyArray,
    ) -> tuple[AbstractPolicy, None, UpdateInfo]:
        """One step of equation (6)."""
        line = _Line.at(policy, samples)
        x, _ = self.natural_gradient.direction(policy, line.gradient, samples.observations, key)
        new, gain, kl = line.probe(self.step_size / (1 - discount) * x)
        return new, None, UpdateInfo(kl, gain, jnp.ones_like(kl))


class TrustRegion(AbstractUpdate):
    """The longest step along ``x`` within ``max_kl`` that raises the surrogate, found by backtracking.

    A trial is accepted if the surrogate gains at least ``accept_ratio`` of what its gradient promises and, unless
    ``test_kl`` is off as in the authors' scripts, the batch's mean KL is at most ``max_kl``.  A refused trial is
    shortened by ``backtrack``; one refused for its KL alone by ``sqrt(max_kl / KL)``, since KL grows with the
    square of the step.
    """

    max_kl: float = eqx.field(default=0.003)
    natural_gradient: NaturalGradient = NaturalGradient()
    backtrack: float = eqx.field(static=True, default=0.5)
    max_trials: int = eqx.field(static=True, default=10)
    accept_ratio: float = eqx.field(static=True, default=0.1)
    test_kl: bool = eqx.field(static=True, default=True)

    def __check_init__(self) -> None:
        require_positive("max_kl", self.max_kl)
        if not 0 < self.backtrack < 1:
            raise SettingsError(f"backtrack must lie in (0, 1), got {self.backtrack}; the paper's runs use .5.")
        if self.max_trials < 1:
            raise SettingsError(f"max_trials must be at least 1, got {self.max_trials}; the paper's runs use 10.")

    def start(self, policy: AbstractPolicy) -> None:
        """Nothing is remembered."""

    def __call__(
        self,
        policy: AbstractPolicy,
        anchor: AbstractPolicy,
        state: None,
        samples: Samples,
        discount: float,
        key: PRNGKeyArray,
    ) -> tuple[AbstractPolicy, None, UpdateInfo]:
        """The accepted trial, or the old policy if none was."""
        line = _Line.at(policy, samples)
        x, curvature = self.natural_gradient.direction(policy, line.gradient, samples.observations, key)
        full = jnp.where(curvature > 0, jnp.sqrt(2 * self.max_kl / curvature), 0) * x
        fraction, gain, kl, accepted = self._search(line, full)
        fraction = jnp.where(accepted, fraction, 0)
        new = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), line.moved(fraction * full), policy)
        return new, None, UpdateInfo(jnp.where(accepted, kl, 0), jnp.where(accepted, gain, 0), fraction)

    def _search(self, line: _Line, full: Vector) -> tuple[Array, Array, Array, Bool[Array, ""]]:
        """Fraction, gain and KL of the last trial, and whether it was accepted."""
        promised = jnp.vdot(line.gradient, full)

        def trial(carry: tuple[Int[Array, ""], Array, Array, Array, Array]) -> tuple:
            count, fraction = carry[:2]
            _, gain, kl = line.probe(fraction * full)
            raised = (gain > 0) & (gain >= self.accept_ratio * fraction * promised)
            near = (kl <= self.max_kl) if self.test_kl else jnp.isfinite(kl)
            # Slightly inside the limit, or rounding would refuse the next trial as well.
            to_limit = jnp.clip(0.97 * jnp.sqrt(self.max_kl / kl), 0.1, 0.97)
            shorter = fraction * jnp.where(raised & ~near & jnp.isfinite(kl), to_limit, self.backtrack)
            accepted = raised & near
            return count + 1, jnp.where(accepted, fraction, shorter), gain, kl, accepted

        zero = jnp.zeros((), full.dtype)
        start = (jnp.zeros((), jnp.int32), jnp.ones((), full.dtype), zero, zero, jnp.zeros((), bool))
        end = jax.lax.while_loop(lambda c: (c[0] < self.max_trials) & ~c[4], trial, start)
        return end[1:]


class _Line(eqx.Module):
    """The surrogate ``E[pi / pi_old * A]`` around a policy: its gradient, and what it is after a step."""

    policy: AbstractPolicy
    samples: Samples
    old: AbstractDistribution
    old_log_prob: Float[Array, " n"]
    gradient: Vector

    @classmethod
    def at(cls, policy: AbstractPolicy, samples: Samples) -> _Line:
        flat, unravel = ravel_pytree(policy)

        def surrogate(theta: Vector) -> tuple[Array, AbstractDistribution]:
            distribution = unravel(theta)(samples.observations)
            # The ratio is 1 here, and its gradient that of the logarithm.
            return (distribution.log_prob(samples.actions) * samples.advantages).mean(), distribution

        gradient, old = jax.grad(surrogate, has_aux=True)(flat)
        return cls(policy, samples, old, old.log_prob(samples.actions), gradient)

    def moved(self, by: Vector) -> AbstractPolicy:
        flat, unravel = ravel_pytree(self.policy)
        return unravel(flat + by)

    def probe(self, by: Vector) -> tuple[AbstractPolicy, Array, Array]:
        """The policy after a step, the gain of the surrogate and the mean ``KL(old || new)``."""
        new = self.moved(by)
        distribution = new(self.samples.observations)
        ratio = jnp.exp(distribution.log_prob(self.samples.actions) - self.old_log_prob)
        return new, ((ratio - 1) * self.samples.advantages).mean(), self.old.kl(distribution).mean()
