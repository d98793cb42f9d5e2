"""A check of a user's objective before a long run: finite, repeatable, its gradient right, concave.

    check_objective(arnpg.Concave(f), ["throughput", "battery"], low=0.0, high=5.0)

samples value vectors in a box and compares ``<grad F(v), d>`` with a central difference, and ``F((u + v) / 2)`` with
``(F(u) + F(v)) / 2``. It can refute concavity, not prove it; what a solve sees is checked again against its bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from arnpg.criteria import AbstractCriterion
from arnpg.errors import ObjectiveError
from arnpg.objectives import AbstractObjective, ConcaveFunction
from arnpg.tabular.host import HostCriterion, on_host

__all__ = ["check_objective"]

ROUNDING = 1e-9  # of a midpoint, relative to the values compared
DIFFERENCE = 1e-4  # of a gradient, relative to its size: truncation and rounding of a central difference


def check_objective(
    criterion: AbstractCriterion,
    names: Sequence[str],
    *,
    low: float | np.ndarray = 0.0,
    high: float | np.ndarray = 1.0,
    samples: int = 200,
    seed: int = 0,
) -> None:
    """Raise an ``ObjectiveError`` that names the fault and a value vector that shows it, or return.

    Args:
        criterion: the criterion whose objective is checked.
        names: the objectives' names, in the model's order.
        low: the least values, one number or one for each objective.
        high: the greatest values.
        samples: how many pairs of value vectors are drawn.
        seed: of the drawing; NumPy's global generator is not used.
    """
    bound = criterion.bind(tuple(names))
    host = on_host(bound, len(names))
    width = np.asarray(high, float) - np.asarray(low, float)
    if not (np.isfinite(width).all() and (width > 0).all()):
        raise ObjectiveError(f"low must be below high, both finite, got low={low} and high={high}.")
    generator = np.random.default_rng(seed)
    for _ in range(samples):
        first, second = (np.asarray(low) + width * generator.random(len(names)) for _ in range(2))
        if not (host.defined(first) and host.defined(second)):
            raise ObjectiveError(f"the objective is not defined at values {first.tolist()}; raise low, or the offset.")
        _check_pure(bound.objective, first)
        _check_pair(host, first, second)
        if host.parts_rows is None:
            _check_gradient(host, first, second - first)


def _check_pure(objective: AbstractObjective, at: np.ndarray) -> None:
    """A user's function is asked itself, twice: compiled code would only repeat what it did when it was traced."""
    if not isinstance(objective, ConcaveFunction):
        return
    with jax.enable_x64(True):
        one, two = (np.asarray(objective.function(jax.numpy.asarray(at))) for _ in range(2))
    if not np.array_equal(one, two, equal_nan=True):
        raise ObjectiveError(
            f"the function gives different answers at the same values {at.tolist()}: {one} and {two}; make it pure."
        )


def _check_pair(host: HostCriterion, first: np.ndarray, second: np.ndarray) -> None:
    """Finite, and not below the chord in the middle."""
    ends = host.value(first), host.value(second)
    if not np.isfinite(ends).all():
        raise ObjectiveError(
            f"the function is {ends[0]} at values {first.tolist()} and {ends[1]} at {second.tolist()}."
        )
    middle, chord = host.value((first + second) / 2), sum(ends) / 2
    if middle < chord - ROUNDING * (abs(ends[0]) + abs(ends[1]) + 1e-300):
        raise ObjectiveError(
            f"the function is not concave: between values {first.tolist()} and {second.tolist()} it is {middle:.9g} "
            f"in the middle, below the mean {chord:.9g} of its ends."
        )


def _check_gradient(host: HostCriterion, at: np.ndarray, toward: np.ndarray) -> None:
    """``<grad F, d>`` against ``(F(v + h d) - F(v - h d)) / 2h``."""
    gradient, step = host.gradient(at), 1e-6
    if not np.isfinite(gradient).all():
        raise ObjectiveError(f"the function's gradient is {gradient.tolist()} at values {at.tolist()}.")
    expected = (host.value(at + step * toward) - host.value(at - step * toward)) / (2 * step)
    slope = float(gradient @ toward)
    size = float(np.abs(gradient) @ np.abs(toward)) + abs(expected) + 1e-9 * abs(host.value(at)) / step
    if abs(slope - expected) > DIFFERENCE * size:
        raise ObjectiveError(
            f"the function's gradient gives a slope of {slope:.9g} at values {at.tolist()}, "
            f"differences give {expected:.9g}; it has a kink or a wrong custom derivative there."
        )
