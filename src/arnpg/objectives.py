"""Concave functions of the value vector, and a criterion: such a function under linear constraints.

This is what methods, master and certificate compute with: arrays in the model's order of objectives, everything a
reward, larger is better. What a user writes, with names, is in ``arnpg.criteria``.

One inequality serves them all. For a value vector ``v`` there are weights ``g`` and a constant ``c`` with

    F(v') <= c + <g, v'>   for every v'        (equality at v),

the gradient of a smooth ``F``, or the worst-case weights of a minimum. With multipliers ``lambda >= 0`` of the
constraints ``C v' >= b`` it bounds every feasible value vector, and so one single-objective solve bounds the optimum:

    F* <= c - <lambda, b> + max_pi <g + C^T lambda, V^pi>.

The formulas work on NumPy and JAX arrays alike: the host solver and the compiled methods share them.
"""

import abc
import functools
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from arnpg.arrays import AnyArray

__all__ = ["AbstractObjective", "ConcaveFunction", "Criterion", "LinearObjective", "LogSum", "Minimum"]

Vector = Any  # NumPy or JAX, (m,)


def _namespace(array: Vector) -> Any:
    return array.__array_namespace__()


class AbstractObjective(eqx.Module):
    """A concave ``F: R^m -> R``."""

    smooth: ClassVar[bool]

    @abc.abstractmethod
    def value(self, values: Vector) -> Any:
        """``F(v)``."""

    @abc.abstractmethod
    def gradient(self, values: Vector) -> Vector:
        """``grad F(v)``, or a subgradient where ``F`` has a kink."""

    @abc.abstractmethod
    def hessian(self, values: Vector) -> Any:
        """``grad^2 F(v)``, ``(m, m)``; used by the master only."""

    def domain(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """``(R, e)`` such that ``F`` is defined where ``R v + e > 0``; ``count`` is ``m``."""
        return np.zeros((0, count)), np.zeros(0)

    def support(self, values: Vector) -> tuple[Vector, Any]:
        """``(g, c)`` with ``F(v') <= c + <g, v'>`` for every ``v'``, by concavity."""
        gradient = self.gradient(values)
        return gradient, self.value(values) - gradient @ values


class LinearObjective(AbstractObjective):
    """``F(v) = <w, v>``."""

    weights: Float[AnyArray, " m"]
    smooth: ClassVar[bool] = True

    def value(self, values: Vector) -> Any:
        """``<w, v>``."""
        return self.weights @ values

    def gradient(self, values: Vector) -> Vector:
        """``w``."""
        return self.weights + 0 * values

    def hessian(self, values: Vector) -> Any:
        """``0``."""
        return 0 * values[:, None] * values


class LogSum(AbstractObjective):
    """``F(v) = sum_i a_i log(delta + v_i)``, proportional fairness (Section 4.1); ``a_i = 0`` leaves ``i`` out."""

    weights: Float[AnyArray, " m"]
    offset: Float[AnyArray, ""]
    smooth: ClassVar[bool] = True

    def value(self, values: Vector) -> Any:
        """``sum_i a_i log(delta + v_i)``."""
        xp = _namespace(values)
        return xp.sum(self.weights * xp.log(_shifted(self, values)))

    def gradient(self, values: Vector) -> Vector:
        """``a_i / (delta + v_i)``."""
        return self.weights / _shifted(self, values)

    def hessian(self, values: Vector) -> Any:
        """``-a_i / (delta + v_i)^2`` on the diagonal."""
        xp = _namespace(values)
        return xp.eye(len(values)) * (-self.weights / _shifted(self, values) ** 2)

    def domain(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """``delta + v_i > 0`` for every ``i`` with ``a_i > 0``."""
        chosen = np.flatnonzero(np.asarray(self.weights) > 0)
        return np.eye(count)[chosen], np.full(len(chosen), float(self.offset))


def _shifted(objective: LogSum, values: Vector) -> Vector:
    """``delta + v`` where ``a_i > 0``, else one; a function, as a lookup on a module takes longer."""
    return _namespace(values).where(objective.weights > 0, objective.offset + values, 1.0)


class ConcaveFunction(AbstractObjective):
    """Any concave JAX function of the value vector, with its derivatives by automatic differentiation."""

    function: Callable[[Float[AnyArray, " m"]], Float[AnyArray, ""]] = eqx.field(static=True)
    smooth: ClassVar[bool] = True

    def value(self, values: Vector) -> Any:
        """``f(v)``."""
        return _like(values, _compiled(self.function)[0])

    def gradient(self, values: Vector) -> Vector:
        """``grad f(v)``."""
        return _like(values, _compiled(self.function)[1])

    def hessian(self, values: Vector) -> Any:
        """``grad^2 f(v)``."""
        return _like(values, _compiled(self.function)[2])


class Minimum(AbstractObjective):
    """``F(v) = min_j (R v - e)_j``, the max-min trade-off (Section 4.3) for ``R = diag(1 / c)`` and ``e = 0``."""

    rows: Float[AnyArray, "p m"]
    offsets: Float[AnyArray, " p"]
    smooth: ClassVar[bool] = False

    def parts(self, values: Vector) -> Vector:
        """``R v - e``, the gradient of ``Phi(v, .)``."""
        return self.rows @ values - self.offsets

    def value(self, values: Vector) -> Any:
        """``min_j (R v - e)_j``."""
        return _namespace(values).min(self.rows @ values - self.offsets)

    def gradient(self, values: Vector) -> Vector:
        """The row of the smallest part: a subgradient."""
        xp = _namespace(values)
        return xp.take(self.rows, xp.argmin(self.rows @ values - self.offsets), axis=0)

    def hessian(self, values: Vector) -> Any:
        """``0``: a minimum of linear functions."""
        return 0 * values[:, None] * values


class Criterion(eqx.Module):
    """Maximise ``F(v)`` subject to ``C v >= b``; a constraint row is ``+e_i`` for at least, ``-e_i`` for at most."""

    objective: AbstractObjective
    rows: Float[AnyArray, "c m"]
    thresholds: Float[AnyArray, " c"]

    def value(self, values: Vector) -> Any:
        """``F(v)``."""
        return self.objective.value(values)

    def slack(self, values: Vector) -> Vector:
        """``C v - b``: negative where a constraint is broken."""
        return self.rows @ values - self.thresholds

    def violation(self, values: Vector) -> Any:
        """``max_i (b - C v)_i``, at least zero."""
        if len(self.thresholds) == 0:
            return 0 * values[0]
        return _namespace(values).maximum(_namespace(values).max(-self.slack(values)), 0.0)

    def ascent(self, values: Vector, multipliers: Vector) -> Vector:
        """``grad F(v) + C^T lambda``, the ascent weights at multipliers ``lambda``."""
        return self.objective.gradient(values) + multipliers @ self.rows


def _like(values: Vector, function: Callable) -> Any:
    """A compiled function of ``values`` in the kind of array that ``values`` is."""
    if not isinstance(values, np.ndarray):
        return function(values)
    with jax.enable_x64(True):
        return np.asarray(function(values))


@functools.lru_cache(maxsize=64)
def _compiled(function: Callable) -> tuple[Callable, Callable, Callable]:
    """The function, its gradient and its Hessian, each compiled once."""
    return jax.jit(function), jax.jit(jax.grad(function)), jax.jit(jax.hessian(function))
