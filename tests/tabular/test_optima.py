"""Three hundred random models under every criterion, against HiGHS and Clarabel.

Tolerances: the reference's own residuals (``Optimum.error``), and nothing for the bound of ``arnpg``, which counts its
own rounding. Values are recomputed by ``np.linalg.solve``; 1e-9 relative is its rounding at a discount of .999.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
import pytest
from models import random_model
from reference import Optimum, Polytope, least_slack, maximum, optimum, square_distance

import arnpg

SEEDS, BATCH = 300, 25
TARGET = 1.0


def squares(values: jax.Array) -> jax.Array:
    """A concave function that a user could write; its optimum may lie inside the achievable region."""
    return -((values - TARGET) ** 2).sum()


def achievable(mdp: arnpg.MDP, generator: np.random.Generator) -> dict[str, float]:
    """Values of a mixture of the uniform policy and a random one."""
    random = np.eye(mdp.actions)[generator.integers(mdp.actions, size=mdp.states)]
    uniform = np.full((mdp.states, mdp.actions), 1 / mdp.actions)
    share, first, second = 0.8 * generator.random(), arnpg.evaluate(mdp, random), arnpg.evaluate(mdp, uniform)
    return {name: share * first[name] + (1 - share) * second[name] for name in first}


def limits(mdp: arnpg.MDP, count: int, generator: np.random.Generator) -> dict[str, dict[str, float]]:
    """Constraints on the last ``count`` objectives that an achievable point meets with room to spare."""
    point, sizes = achievable(mdp, generator), np.ptp(mdp.rewards, axis=(1, 2)) / (1 - mdp.discount)
    found: dict[str, dict[str, float]] = {"at_least": {}, "at_most": {}}
    for i in range(mdp.objectives - count, mdp.objectives):
        name = mdp.names[i]
        room = 0.02 * (sizes[i] + 1e-3 * abs(point[name])) * (0.01 + generator.random())
        sign, side = (-1, "at_least") if generator.random() < 0.6 else (1, "at_most")
        found[side][name] = point[name] + sign * room
    return found


def criteria(mdp: arnpg.MDP, seed: int) -> Iterator[arnpg.criteria.AbstractCriterion]:
    """Every kind of criterion."""
    generator = np.random.default_rng(10**6 + seed)
    names, m = mdp.names, mdp.objectives
    sizes = np.ptp(mdp.rewards, axis=(1, 2)) / (1 - mdp.discount)
    offset = max(0.0, -mdp.rewards.min()) / (1 - mdp.discount) + 1e-3 * float(sizes.max()) + 1e-3
    positive = lambda: dict(zip(names, 0.5 + generator.random(m), strict=True))  # noqa: E731
    count = int(generator.integers(1, m))
    yield arnpg.Linear(dict(zip(names, generator.normal(size=m), strict=True)))
    yield arnpg.Constrained(names[0], **limits(mdp, 1, generator))
    yield arnpg.Constrained(names[0], **limits(mdp, m - 1, generator))
    yield arnpg.ProportionalFair(positive())
    yield arnpg.ProportionalFair(offset=offset)
    yield arnpg.MaxMin(positive())
    yield arnpg.Concave(squares)
    yield arnpg.Constrained(arnpg.ProportionalFair(offset=offset), **limits(mdp, count, generator))
    yield arnpg.Constrained(arnpg.MaxMin(), **limits(mdp, count, generator))
    yield arnpg.Constrained(arnpg.Concave(squares, over=names[: m - count]), **limits(mdp, count, generator))


def reference(mdp: arnpg.MDP, criterion: arnpg.criteria.AbstractCriterion) -> Optimum:
    inner = criterion.maximize if isinstance(criterion, arnpg.Constrained) else criterion
    if isinstance(inner, arnpg.Concave):
        weights = np.array([float(inner.over is None or name in inner.over) for name in mdp.names])
        return square_distance(mdp, TARGET, weights, criterion.bind(mdp.names))
    return optimum(mdp, criterion.bind(mdp.names))


def recomputed(mdp: arnpg.MDP, policy: arnpg.TabularPolicy) -> np.ndarray:
    """Values by their definition."""
    chain = np.einsum("sa,sat->st", policy.probabilities, mdp.transitions)
    reward = np.einsum("sa,msa->sm", policy.probabilities, mdp.rewards)
    return mdp.initial @ np.linalg.solve(np.eye(mdp.states) - mdp.discount * chain, reward)


def verify(mdp: arnpg.MDP, criterion: arnpg.criteria.AbstractCriterion, best: Optimum, label: str) -> None:
    solution, bound = arnpg.solve(mdp, criterion), criterion.bind(mdp.names)
    values = np.array(list(solution.values.values()))
    ranges = float(np.ptp(mdp.rewards, axis=(1, 2)).max()) / (1 - mdp.discount)
    unmet = np.maximum(-bound.slack(values), 0.0) if len(bound.thresholds) else np.zeros(0)
    paid = float(np.array(list(solution.multipliers.values())) @ unmet)
    assert solution.certified, (label, solution.relative_gap)
    assert solution.relative_gap <= 1e-6, label
    lowest, highest = solution.objective - paid - best.error, solution.bound + best.error
    assert lowest <= best.value <= highest, (label, best, solution.summary())
    assert solution.violation <= 1e-8 * max(ranges, 1e-3 * np.abs(values).max()), label
    np.testing.assert_allclose(recomputed(mdp, solution.policy), values, rtol=1e-9, atol=1e-9 * ranges, err_msg=label)


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_every_criterion_on_random_models(first: int) -> None:
    for seed in range(first, first + BATCH):
        mdp = random_model(seed)
        for number, criterion in enumerate(criteria(mdp, seed)):
            label = f"seed {seed}, criterion {number}"
            if isinstance(criterion, arnpg.ProportionalFair) and not criterion.offset:
                reachable = least_slack(mdp, np.eye(mdp.objectives), np.zeros(mdp.objectives))
                if reachable.value < 1e-9:  # HiGHS: no policy has only positive values
                    with pytest.raises(arnpg.ObjectiveError, match="needs a positive value of"):
                        arnpg.solve(mdp, criterion)
                    continue
            verify(mdp, criterion, reference(mdp, criterion), label)


def test_thresholds_at_the_edge() -> None:
    """Exactly at the reachable maximum: solved, within 1e-8 of the range. Above it by 1e-6 of the range: refused."""
    for seed in range(120):
        mdp = random_model(seed)
        size = float(np.ptp(mdp.rewards[1])) / (1 - mdp.discount)
        if size == 0:
            continue
        peak = arnpg.solve(mdp, arnpg.Linear({"r1": 1.0}), gap=1e-9)
        limit = peak.values["r1"]
        verify_edge(mdp, limit, size)
        with pytest.raises(arnpg.InfeasibleError, match="no policy meets the constraints"):
            arnpg.solve(mdp, arnpg.Constrained("r0", at_least={"r1": limit + 1e-6 * size + peak.gap}))


def verify_edge(mdp: arnpg.MDP, limit: float, size: float) -> None:
    solution = arnpg.solve(mdp, arnpg.Constrained("r0", at_least={"r1": limit}))
    assert solution.violation <= 1e-8 * size
    assert solution.relative_gap <= 1e-6
    assert any("only just feasible" in note for note in solution.notes)


def test_infeasible_constraints_are_refused_with_a_proof_and_feasible_ones_never() -> None:
    """HiGHS decides; the least violation agrees to 1e-6 of the range, the gap of phase one."""
    refused = 0
    for seed in range(300):
        mdp = random_model(seed)
        generator = np.random.default_rng(seed + 5)
        words = limits(mdp, mdp.objectives - 1, generator)
        sizes = dict(zip(mdp.names, Polytope(mdp).ranges, strict=True))
        push = 0.3 * generator.random()
        tight = {n: v + push * sizes[n] for n, v in words["at_least"].items()}
        lower = {n: v - push * sizes[n] for n, v in words["at_most"].items()}
        criterion = arnpg.Constrained("r0", at_least=tight, at_most=lower)
        bound = criterion.bind(mdp.names)
        best = least_slack(mdp, bound.rows, bound.thresholds)
        if best.value > 1e-7:
            arnpg.solve(mdp, criterion)
        elif best.value < -1e-7:
            refused += 1
            with pytest.raises(arnpg.InfeasibleError) as caught:
                arnpg.solve(mdp, criterion)
            check_proof(mdp, bound, caught.value.proof, best, f"seed {seed}")
    assert refused > 50


def check_proof(mdp: arnpg.MDP, bound, proof, best: Optimum, label: str) -> None:
    assert (proof.weights >= 0).all(), label
    weighted = (proof.weights @ bound.rows)[None]
    level, none = np.array([proof.weights @ bound.thresholds]), bound.rows[:0]
    most = maximum(Polytope(mdp), weighted, level, none, np.zeros(0))
    assert most.value <= -proof.shortfall + most.error, label
    assert proof.shortfall > 0, label
    units = np.abs(bound.rows) @ Polytope(mdp).ranges
    assert abs((proof.violations / units).max() + best.value) <= 2e-6 * (1 + abs(best.value)) + best.error, label
