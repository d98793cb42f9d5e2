"""The corrective master against HiGHS on random points, and in the cases that break interior-point methods."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from arnpg.objectives import Criterion, LinearObjective, LogSum
from arnpg.tabular.host import HostCriterion, least_of, on_host
from arnpg.tabular.master import best_mixture

TOLERANCE = 1e-10


def constrained(points: np.ndarray, generator: np.random.Generator) -> HostCriterion:
    """Maximise the first value; the last is at least its mean over the points."""
    m = len(points)
    row, weights = np.eye(m)[-1:], np.eye(m)[0]
    return on_host(Criterion(LinearObjective(weights), row, np.array([points[-1].mean()])), m)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e6])
def test_constrained_mixtures_against_highs(seed: int, unit: float) -> None:
    """Both are exact up to their tolerances: 1e-8 of the points' size leaves room for HiGHS's 1e-9."""
    generator = np.random.default_rng(seed)
    points = unit * generator.random((int(generator.integers(2, 6)), int(generator.integers(2, 40))))
    criterion = constrained(points, generator)
    mixture = best_mixture(criterion, points, TOLERANCE)
    scaled = points / unit
    answer = linprog(
        -scaled[0],
        -scaled[-1:],
        [-criterion.thresholds[0] / unit],
        np.ones((1, points.shape[1])),
        [1.0],
        method="highs",
    )
    assert mixture.values[0] == pytest.approx(-answer.fun * unit, abs=1e-8 * unit)
    assert criterion.violation(mixture.values) <= 1e-8 * unit
    assert mixture.multipliers[0] == pytest.approx(-answer.ineqlin.marginals[0], abs=1e-6)
    assert mixture.weights.sum() == pytest.approx(1.0, abs=1e-15 * points.shape[1])


@pytest.mark.parametrize("seed", range(40))
def test_the_weights_of_a_minimum_prove_its_optimum(seed: int) -> None:
    """Weak duality: ``max_i <p, v_i>`` bounds every mixture, and meets the mixture's own minimum."""
    generator = np.random.default_rng(seed)
    points = generator.random((int(generator.integers(2, 6)), int(generator.integers(1, 40))))
    points *= 10.0 ** generator.uniform(-3, 3, size=(len(points), 1))
    mixture = best_mixture(least_of(np.eye(len(points)), np.zeros(len(points))), points, TOLERANCE)
    bound = float((mixture.worst_case @ points).max())
    assert mixture.values.min() <= bound * (1 + 1e-12)
    assert bound == pytest.approx(mixture.values.min(), rel=1e-7)


@pytest.mark.parametrize("offset", [0.0, 0.1])
def test_first_order_conditions_of_the_logarithm(offset: float) -> None:
    """At the optimum no point lies above the tangent: ``<grad F(v), v_i - v> <= 0``."""
    generator = np.random.default_rng(1)
    points = generator.random((3, 25))
    criterion = on_host(Criterion(LogSum(np.ones(3), np.float64(offset)), np.zeros((0, 3)), np.zeros(0)), 3)
    mixture = best_mixture(criterion, points, TOLERANCE)
    rise = criterion.gradient(mixture.values) @ (points - mixture.values[:, None])
    assert rise.max() <= 1e-8


def test_one_point_repeated_points_and_equal_objectives() -> None:
    one = np.array([[1.0], [2.0]])
    least = least_of(np.eye(2), np.zeros(2))
    assert best_mixture(least, one).worst_case == pytest.approx([1, 0], abs=1e-6)
    repeated = np.repeat(np.array([[1.0, 0.0], [0.0, 1.0]]), 10, axis=1)
    assert best_mixture(least, repeated).values == pytest.approx([0.5, 0.5], abs=1e-9)
    equal = np.ones((2, 5))
    assert best_mixture(least, equal).values == pytest.approx([1.0, 1.0], abs=1e-15)


def test_a_looser_tolerance_stays_further_inside() -> None:
    """Column generation relies on it: central prices do not jump between vertices."""
    points = np.random.default_rng(3).random((2, 20))
    least = least_of(np.eye(2), np.zeros(2))
    smallest = [best_mixture(least, points, tolerance).weights.min() for tolerance in (1e-2, 1e-4, 1e-8)]
    assert smallest[0] > smallest[1] > smallest[2]
