"""The bound holds for any guess whatsoever, and is tight at the optimum."""

from __future__ import annotations

import numpy as np
import pytest
from models import dense_model, random_model
from reference import Polytope, maximum

import arnpg
from arnpg.tabular.certificate import criterion_bound, single_objective_bound
from arnpg.tabular.dense import DenseKernel
from arnpg.tabular.host import on_host


def never(lower: float, upper: float) -> bool:
    """Ascend to the end."""
    return False


@pytest.mark.parametrize("seed", range(60))
def test_the_bound_holds_for_any_guess_and_is_tight_at_the_end(seed: int) -> None:
    """HiGHS gives the maximum; the last bound of policy iteration is within its error and 1e-9 of the size."""
    mdp, generator = random_model(seed), np.random.default_rng(seed)
    kernel, polytope = DenseKernel(mdp), Polytope(random_model(seed))
    weights = generator.normal(size=mdp.objectives) / polytope.units
    none = np.zeros((0, mdp.objectives))
    best = maximum(polytope, weights[None], np.zeros(1), none, np.zeros(0))
    for _ in range(5):
        guess = generator.normal(size=mdp.states) * mdp.objectives
        assert single_objective_bound(kernel, weights, guess) >= best.value - best.error
    *_, (_, last) = kernel.ascend(weights, kernel.uniform(), never)
    assert best.value - best.error <= last <= best.value + best.error + 1e-9 * mdp.objectives


def test_the_error_of_values_covers_a_wrong_value_function() -> None:
    """Moving ``U`` by a known amount moves the allowed error by at least as much."""
    mdp = dense_model(8, 3, 2, seed=1, discount=0.9)
    kernel = DenseKernel(mdp)
    point = kernel.evaluate(np.zeros(8, int))
    assert (kernel.error(point) < 1e-11).all()
    for shift in (1e-6, 1.0):
        errors = kernel.error(point._replace(detail=point.detail + shift))
        assert (errors >= shift).all()


@pytest.mark.parametrize("criterion", [arnpg.ProportionalFair(), arnpg.MaxMin(), arnpg.Linear({"r0": 1, "r1": -1})])
def test_tangents_at_any_point_bound_every_policy(criterion) -> None:
    mdp, generator = dense_model(10, 4, 2, seed=2), np.random.default_rng(0)
    kernel, host = DenseKernel(mdp), on_host(criterion.bind(mdp.names), 2)
    best = arnpg.solve(mdp, criterion).objective
    for _ in range(20):
        at, worst = 5 * generator.random(2) + 0.1, generator.dirichlet(np.ones(2))
        gradient, _ = host.support(at, worst)
        *_, (_, single) = kernel.ascend(gradient, kernel.uniform(), never)
        assert criterion_bound(host, at, np.zeros(0), worst, single) >= best


def test_a_worse_policy_is_never_certified() -> None:
    """The certificate is about the returned policy: its gap covers the distance to a run of tighter gap."""
    mdp = dense_model(15, 4, 3, seed=4, discount=0.95)
    loose, tight = (arnpg.solve(mdp, arnpg.MaxMin(), gap=gap) for gap in (0.3, 1e-9))
    assert loose.objective <= tight.objective + tight.gap
    assert tight.objective <= loose.bound
    assert tight.relative_gap <= 1e-9
