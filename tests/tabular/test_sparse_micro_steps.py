"""The paper's micro step on sparse models: the formulas of a dense copy, and the same runs."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from sparse_models import pair

import arnpg
from arnpg import MDP
from arnpg.tabular import memory
from arnpg.tabular.masks import without_mask
from arnpg.tabular.transitions import DenseTransitions, SlotTransitions, transitions_of


@jax.jit
def everything(transitions, policy, discount, right, guess, initial):
    return (
        transitions.expected(right[:, 0]),
        transitions.solve(policy, discount, right, guess),
        transitions.occupancy(policy, discount, initial),
    )


@pytest.mark.parametrize("seed", [0, 5])
def test_a_sparse_and_a_dense_copy_agree_in_every_formula(seed: int) -> None:
    """Odd seeds are slow walks. LAPACK's rounding grows with ``1 / (1 - gamma)``, and so does the tolerance."""
    sparse, dense = (transitions_of(without_mask(mdp)) for mdp in pair(seed, 0.9))
    assert isinstance(sparse, SlotTransitions)
    assert isinstance(dense, DenseTransitions)
    draws = np.random.default_rng(seed)
    states, actions, _ = dense.table.shape
    policy, initial = draws.dirichlet(np.ones(actions), states), draws.dirichlet(np.ones(states))
    right = np.column_stack([draws.random((states, 2)), np.zeros(states), np.ones(states)])
    with jax.enable_x64(True):
        for discount in (0.0, 0.9, 0.9999):
            for guess in (np.zeros_like(right), 1e3 * draws.random(right.shape)):
                given = (policy, discount, right, guess, initial)
                found, expected = everything(sparse, *given), everything(dense, *given)
                for one, two in zip(found, expected, strict=True):
                    np.testing.assert_allclose(one, two, rtol=1e-10 / (1 - discount), atol=1e-10)


def test_a_plain_algorithm_on_a_sparse_model_does_what_it_does_on_its_dense_copy() -> None:
    """1e-9: evaluations are iterative, to 1e-12 of a reward; thirty steps add to that."""
    criterion = arnpg.Constrained("objective 1", at_least={"objective 2": 4.5})
    sparse, dense = (
        arnpg.solve(mdp, criterion, method="arnpg-epd", steps=30, step_size=0.5, regularisation=0.2)
        for mdp in pair(2, 0.9)
    )
    np.testing.assert_allclose(sparse.trace.values, dense.trace.values, rtol=1e-9)
    for name in ("average", "best", "last"):
        np.testing.assert_allclose(sparse.candidates[name].values, dense.candidates[name].values, rtol=1e-8)
    best = arnpg.solve(pair(2, 0.9)[0], criterion)
    assert sparse.objective <= best.bound + max(best.multipliers.values()) * sparse.violation


def test_one_long_row_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots are as many as the longest row has; the default method keeps the matrix, which is small."""
    states = 3000
    others = np.arange(1, states)
    rows = np.concatenate([np.zeros(states, int), others])
    columns = np.concatenate([np.arange(states), np.zeros_like(others)])
    chances = np.concatenate([np.full(states, 1 / states), np.ones(states - 1)])
    mdp = MDP.from_triples(rows, np.zeros_like(rows), columns, chances, {"a": np.ones((states, 1))}, discount=0.9)
    monkeypatch.setattr(memory, "available", lambda: 10**8)
    with pytest.raises(arnpg.ModelError, match=r"a table of 3000 rows of 3000 slots needs 216 MB.*default method"):
        arnpg.solve(mdp, arnpg.MaxMin(), method="arnpg-omda")
    assert arnpg.solve(mdp, arnpg.MaxMin()).objective == pytest.approx(10)
