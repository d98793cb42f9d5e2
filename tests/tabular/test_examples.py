"""The example models: their sizes follow the argument, and what their pages say of them is so."""

from __future__ import annotations

import numpy as np
import pytest

import arnpg
from arnpg.examples import downlink, hazard_grid, hospital_ward, inventory, multiclass_queue

CASES = [
    (multiclass_queue, arnpg.Constrained("served 1", at_most={"waiting": 3.0}, at_least={"served 3": 0.115})),
    (inventory, arnpg.Constrained(arnpg.Linear({"cost": -1.0}), at_most={"lost 1": 0.02, "lost 2": 0.014})),
    (hospital_ward, arnpg.MaxMin({"admitted 1": 0.7, "admitted 2": 0.9})),
    (downlink, arnpg.ProportionalFair()),
    (hazard_grid, arnpg.Constrained("first", at_most={"hazard": 3.0})),
]


@pytest.mark.parametrize(("example", "criterion"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_an_example_is_solved_and_has_the_size_that_was_asked_for(example, criterion) -> None:
    """A thousand states are solved, a hundred thousand only built; sizes are rounded to whole sides."""
    for states in (1000, 100_000):
        mdp = example(states)
        assert mdp.is_sparse
        assert abs(mdp.states / states - 1) < 0.04
        sums = mdp.transitions @ np.ones(mdp.states)
        used = slice(None) if mdp.allowed is None else mdp.allowed.ravel()
        np.testing.assert_allclose(sums[used], 1, atol=1e-12)
    assert arnpg.solve(example(1000), criterion).certified


@pytest.mark.parametrize("example", [case[0] for case in CASES])
def test_impossible_sizes_are_refused(example) -> None:
    for states in (1, True, 1e3, 10**13):
        with pytest.raises(arnpg.ModelError, match="states must be a whole number|GB of memory are free"):
            example(states)


def test_first_come_first_served_is_fair_to_both_classes() -> None:
    """While beds are free both are admitted, so both find the ward full equally often."""
    mdp = hospital_ward(400)
    table = np.zeros((mdp.states, mdp.actions))
    table[np.arange(mdp.states), mdp.allowed.argmax(axis=1)] = 1.0
    values = arnpg.evaluate(mdp, table)
    best = arnpg.solve(mdp, arnpg.MaxMin())
    assert values["admitted 1"] == pytest.approx(values["admitted 2"], rel=1e-9)
    assert best.objective == pytest.approx(values["admitted 1"], rel=2e-6)


def test_the_station_never_needs_high_power() -> None:
    """Two units sent one after the other carry more than both at once: the rate is a logarithm."""
    policy = arnpg.solve(downlink(512), arnpg.ProportionalFair()).policy.probabilities
    assert policy[:, 3:].max() < 1e-6
