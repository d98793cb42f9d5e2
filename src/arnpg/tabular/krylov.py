"""BiCGSTAB in compiled code, for several right-hand sides at once: values and occupancies inside the macro loop.

Each column has scalars of its own, and rests once its residual is small: a joint iteration would divide 0 by 0 when
one column converges early. Rounds restart from the true residual; where they stall, plain sweeps, which contract by
``gamma``, go on until rounding ends the progress. ``sparse_evaluation`` is its brother on the host, for one
right-hand side and large models.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from arnpg.arrays import Scalar

__all__ = ["occupancy_system", "value_system"]

EXACT = 1e-12  # a residual relative to its right-hand side that is none
ROUNDING = 64 * 2.0**-53  # of a residual, relative to the solution
NOTHING = 1e-15  # a residual relative to the largest right-hand side that is none: a column may be all zeros
ROUND = 400  # products of one round at most
SMALLEST = 1e-290

Product = Callable[[Array], Array]
Columns = Float[Array, "s k"]


class _Iterate(NamedTuple):
    """Van der Vorst's vectors ``(S, k)`` and his scalar ``rho`` ``(k,)``."""

    x: Columns
    residual: Columns
    direction: Columns
    rho: Float[Array, " k"]
    products: Array


class _Reached(NamedTuple):
    """Solutions, their residuals, and whether the last round or sweep helped any of them."""

    x: Columns
    residual: Columns
    helped: Array


def value_system(product: Product, discount: Scalar, right: Columns, guess: Columns) -> Columns:
    """``(I - discount P) x = right``; rows of ``P`` sum to 1, so the mean of a residual is known in closed form."""

    def centre(residual: Columns) -> Columns:
        return jnp.mean(residual, axis=0)

    return _solve(lambda x: discount * product(x), discount, right, guess, centre, _largest)


def occupancy_system(product: Product, discount: Scalar, initial: Float[Array, " s"]) -> Float[Array, " s"]:
    """``(I - discount P^T) d = (1 - discount) rho``, measured by the sum of moduli."""
    none = lambda residual: jnp.zeros(residual.shape[1])  # noqa: E731
    right = (1 - discount) * initial[:, None]
    modulus = lambda vectors: jnp.abs(vectors).sum(axis=0)  # noqa: E731
    return _solve(lambda x: discount * product(x), discount, right, initial[:, None], none, modulus)[:, 0]


def _largest(vectors: Columns) -> Float[Array, " k"]:
    return jnp.abs(vectors).max(axis=0)


def _solve(step: Product, discount: Scalar, right: Columns, guess: Columns, centre, norm) -> Columns:  # noqa: ANN001
    """Rounds of Krylov iterations while they help, then sweeps while the residual is not negligible."""

    def shifted(x: Columns) -> tuple[Columns, Columns]:
        residual = right - x + step(x)
        shift = centre(residual)
        return x + shift / (1 - discount), residual - shift

    def busy(x: Columns, residual: Columns) -> Array:
        allowed = jnp.maximum(EXACT * norm(right), ROUNDING * (norm(x) + norm(right)))
        return norm(residual) > jnp.maximum(allowed, NOTHING * norm(right).max())

    def one_round(at: _Reached) -> _Reached:
        ended = _bicgstab(step, at.x, at.residual, lambda e: busy(at.x, 2 * e))
        candidate, fresh = shifted(ended)
        better = norm(fresh) < norm(at.residual)
        helped = (busy(at.x, at.residual) & (norm(fresh) <= 0.5 * norm(at.residual))).any()
        return _Reached(jnp.where(better, candidate, at.x), jnp.where(better, fresh, at.residual), helped)

    def sweep(at: _Reached) -> _Reached:
        x, fresh = shifted(at.x + at.residual)
        return _Reached(x, fresh, (busy(x, fresh) & (norm(fresh) < norm(at.residual))).any())

    def going(at: _Reached) -> Array:
        return at.helped & busy(at.x, at.residual).any()

    reached = jax.lax.while_loop(going, one_round, _Reached(*shifted(guess), jnp.asarray(True)))
    return jax.lax.while_loop(going, sweep, reached._replace(helped=jnp.asarray(True))).x


def _bicgstab(step: Product, x: Columns, residual: Columns, busy: Callable[[Columns], Array]) -> Columns:
    """Iterations until no column is ``busy`` or the round is over; a column that would divide by nothing rests."""
    dot = lambda left, right: (left * right).sum(axis=0)  # noqa: E731
    shadow = residual

    def iterate(at: _Iterate) -> _Iterate:
        image = at.direction - step(at.direction)
        length = busy(at.residual) * _quotient(at.rho, dot(shadow, image))
        half = at.residual - length * image
        turned = half - step(half)
        omega = (length != 0) * _quotient(dot(turned, half), dot(turned, turned))
        fresh = half - omega * turned
        rho = dot(shadow, fresh)
        onward = _quotient(rho, at.rho) * _quotient(length, omega)
        direction = fresh + onward * (at.direction - omega * image)
        return _Iterate(at.x + length * at.direction + omega * half, fresh, direction, rho, at.products + 2)

    def going(at: _Iterate) -> Array:
        return (busy(at.residual) & (at.rho != 0)).any() & (at.products < ROUND)

    start = _Iterate(x, residual, residual, dot(residual, residual), jnp.zeros((), int))
    return jax.lax.while_loop(going, iterate, start).x


def _quotient(above: Array, below: Array) -> Array:
    """``above / below``, 0 where that would be no number."""
    usable = jnp.abs(below) > SMALLEST
    return jnp.where(usable, above / jnp.where(usable, below, 1.0), 0.0)
