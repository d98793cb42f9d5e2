"""The bounds of Theorems 1-3 with the theorems' own parameters, and the dual's properties (Lemma 5)."""

import numpy as np
import pytest

from arnpg import Constrained, MaxMin, ProportionalFair, solve
from arnpg.loop import run
from arnpg.method import Algorithm
from arnpg.methods import EPD, IMD, OMDA
from arnpg.tabular import theory
from arnpg.tabular.exact import ExactInnerLoop

STEPS = 60


def exact(mdp, guarantee):
    return ExactInnerLoop(mdp, step_size=guarantee.step_size, regularisation=guarantee.regularisation)


def test_theorem_1(small_mdp):
    """Sum-log with delta = 1: beta = L = m; the average gap is within ``2 alpha log|A| / ((1 - gamma) K)``."""
    words = ProportionalFair(offset=1.0)
    criterion = words.bind(small_mdp.names)
    promise = theory.theorem_1(small_mdp.discount, small_mdp.actions, STEPS, smoothness=3.0, gradient_bound=3.0)
    trace = run(Algorithm(IMD(criterion, promise.micro_steps), exact(small_mdp, promise)), STEPS).trace
    optimum = solve(small_mdp, words, gap=1e-9).bound
    gaps = optimum - np.array([criterion.value(values) for values in trace.values])
    assert gaps.min() > -1e-9
    assert gaps.min() <= gaps.mean() <= promise.gap_bound


@pytest.mark.parametrize("dual_step", [0.3, 1.0])
def test_theorem_2_and_the_properties_of_the_dual(small_mdp, dual_step):
    """Average gap and violation within (12) and (13); the dual non-negative, above its floor, weights non-negative."""
    words = Constrained("first", at_least={"second": 1.75, "third": 1.5})
    criterion = words.bind(small_mdp.names)
    gamma, actions = small_mdp.discount, small_mdp.actions
    promise = theory.theorem_2(gamma, actions, STEPS, objectives=3, dual_step=dual_step)
    method = EPD(criterion, promise.micro_steps, dual_step)
    trace = run(Algorithm(method, exact(small_mdp, promise)), STEPS).trace
    best = solve(small_mdp, words, gap=1e-9)
    assert best.bound - trace.values[:, 0].mean() <= promise.gap_bound
    norm = float(np.linalg.norm(list(best.multipliers.values())))
    allowed = theory.violation_bound(promise, gamma, actions, STEPS, norm)
    slacks = np.array([criterion.slack(values) for values in trace.values])
    assert (-slacks.mean(axis=0)).max() <= allowed
    assert (trace.dual >= 0).all()
    assert (trace.dual >= dual_step * np.abs(slacks) - 1e-12).all()
    assert (trace.dual - dual_step * slacks >= -1e-12).all()
    assert len(set(trace.micro_steps.tolist())) > 1, "the number of micro steps follows the dual"


def test_theorem_3(small_mdp):
    """Max-min: beta = L = 1 in the norms of the theorem for unit scales."""
    words = MaxMin()
    criterion = words.bind(small_mdp.names)
    promise = theory.theorem_3(
        small_mdp.discount, small_mdp.actions, STEPS, objectives=3, smoothness=1.0, gradient_bound=1.0
    )
    method = OMDA(criterion, promise.micro_steps, promise.dual_step)
    trace = run(Algorithm(method, exact(small_mdp, promise)), STEPS).trace
    assert solve(small_mdp, words, gap=1e-9).bound - trace.values.mean(axis=0).min() <= promise.gap_bound
