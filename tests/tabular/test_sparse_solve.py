"""Sparse models under every criterion: equal to their dense copies, within certified intervals, refused where due."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from models import random_model
from reference import optimum
from sparse_models import garnet, pair
from test_optima import recomputed

import arnpg
from arnpg.tabular import choice
from arnpg.tabular.sparse import SparseKernel

DISCOUNTS = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)


@pytest.fixture(autouse=True)
def _always_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny sparse models are usually spread out; here they are not."""
    monkeypatch.setattr(choice, "SMALL", 0)


def criteria(mdp: arnpg.MDP, seed: int):
    """One of each kind; limits a little above what the uniform policy reaches."""
    first, second, third = mdp.names
    allowed = np.ones((mdp.states, mdp.actions)) if mdp.allowed is None else mdp.allowed
    uniform = arnpg.evaluate(mdp, allowed / allowed.sum(axis=1, keepdims=True))
    floors = {second: 1.001 * uniform[second]}
    every = [
        arnpg.MaxMin(),
        arnpg.ProportionalFair(),
        arnpg.Linear({first: 1.0, second: -1.0}),
        arnpg.Constrained(first, at_least=floors),
        arnpg.Constrained(arnpg.ProportionalFair(offset=1.0), at_most={third: 1.01 * uniform[third]}),
    ]
    return [every[seed % 5], every[(seed + 1 + seed // 5) % 5]]


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("first", range(0, 20, 10))
def test_a_sparse_and_a_dense_copy_give_the_same_answer(discount: float, first: int) -> None:
    """1e-9: both are solved to a gap of 1e-10; above a discount of .99 rounding allows 1e-8 of certified gap."""
    gap = 1e-10 if discount < 0.99 else 1e-8
    for seed in range(first, first + 10):
        sparse, dense = pair(seed, discount)
        for criterion in criteria(dense, seed):
            try:
                expected = arnpg.solve(dense, criterion, gap=gap)
            except arnpg.InfeasibleError:
                with pytest.raises(arnpg.InfeasibleError, match="proved by weights"):
                    arnpg.solve(sparse, criterion, gap=gap)
                continue
            found = arnpg.solve(sparse, criterion, gap=gap)
            assert found.certified, (seed, found.summary())
            assert found.objective == pytest.approx(expected.objective, rel=max(1e-9, 2 * gap))
            values = list(found.values.values())
            np.testing.assert_allclose(recomputed(dense, found.policy), values, rtol=1e-9)
            if sparse.allowed is not None:
                assert not found.policy.probabilities[~sparse.allowed].any()


@pytest.mark.parametrize("seed", range(60))
def test_certified_intervals_contain_the_optimum_of_highs(seed: int) -> None:
    """The models of ``test_optima``, handed over as sparse matrices; the same bounds hold, no tolerance added."""
    mdp = random_model(seed)
    rows = scipy.sparse.csr_array(mdp.transitions.reshape(-1, mdp.states))
    words = dict(discount=mdp.discount, initial=mdp.initial, names=mdp.names)
    sparse = arnpg.MDP.from_sparse(rows, mdp.rewards, **words)
    weights = dict(zip(mdp.names, np.random.default_rng(seed).normal(size=mdp.objectives), strict=True))
    uniform = arnpg.evaluate(mdp, np.full((mdp.states, mdp.actions), 1 / mdp.actions))
    limit = {"r1": uniform["r1"] - 0.01 * float(mdp.reward_ranges[1] + 1e-3 * mdp.reward_sizes[1])}
    for criterion in (arnpg.Linear(weights), arnpg.MaxMin(), arnpg.Constrained("r0", at_least=limit)):
        best = optimum(mdp, criterion.bind(mdp.names))
        solution = arnpg.solve(sparse, criterion)
        paid = sum(solution.multipliers.values()) * solution.violation
        assert solution.certified, (seed, solution.summary())
        assert solution.objective - paid - best.error <= best.value <= solution.bound + best.error, (seed, criterion)


def test_the_error_of_values_covers_a_wrong_occupancy() -> None:
    """Whatever is handed over as occupancy, the true values lie within the error."""
    sparse, dense = pair(4, 0.95)
    kernel, generator = SparseKernel(sparse), np.random.default_rng(0)
    table = sparse.allowed / sparse.allowed.sum(axis=1, keepdims=True)
    point = kernel.evaluate(table)
    exact = np.array(list(arnpg.evaluate(dense, table).values()))
    assert (kernel.error(point) < 1e-10).all()
    for size in (0.0, 1e-6, 1e-2):
        wrong = point.detail + size * generator.random(len(point.detail))
        shifted = point._replace(detail=wrong, values=kernel._values(table, wrong))
        assert (np.abs(shifted.values - exact) <= kernel.error(shifted) + 1e-12).all()


def test_an_impossible_limit_is_refused_and_a_wrong_policy_too() -> None:
    successors, probabilities, rewards = garnet(300, 3, 4, 0)
    allowed = np.ones((300, 3), bool)
    allowed[7, 2] = False
    mdp = arnpg.MDP.from_slots(successors, probabilities, rewards, discount=0.9, allowed=allowed)
    with pytest.raises(arnpg.InfeasibleError, match="no policy meets the constraints") as caught:
        arnpg.solve(mdp, arnpg.Constrained("objective 1", at_least={"objective 2": 9.9}))
    assert caught.value.proof.shortfall > 0
    with pytest.raises(arnpg.SettingsError, match=r"policy\[7, 2\] must be 0: the action is not allowed"):
        arnpg.evaluate(mdp, np.full((300, 3), 1 / 3))


def test_ctrl_c_gives_the_best_so_far_and_a_time_limit_too() -> None:
    mdp = arnpg.MDP.from_slots(*garnet(3000, 3, 4, 1), discount=0.95)

    def interrupt(seen: arnpg.api.Progress) -> None:
        if seen.step == 4:
            raise KeyboardInterrupt

    stopped = arnpg.solve(mdp, arnpg.MaxMin(), gap=1e-9, progress=interrupt)
    best = arnpg.solve(mdp, arnpg.MaxMin())
    assert any("interrupted: the best after 4 rounds" in note for note in stopped.notes)
    assert not stopped.certified
    assert stopped.objective <= best.bound
    assert best.objective <= stopped.bound
    assert not arnpg.solve(mdp, arnpg.MaxMin(), gap=1e-9, time_limit=1e-3).certified


def test_the_plain_algorithms_keep_to_allowed_actions() -> None:
    _, dense = pair(6, 0.8)
    solution = arnpg.solve(dense, arnpg.MaxMin(), method="arnpg-omda", steps=50)
    assert not solution.policy.probabilities[~dense.allowed].any()
    exact = arnpg.solve(dense, arnpg.MaxMin())
    assert solution.objective <= exact.bound + 1e-9
