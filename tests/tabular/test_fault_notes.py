"""What is accepted and told: odd sources of numbers, states never visited, dual variables that run away."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from models import dense_model

import arnpg
from arnpg import MDP, Concave, Constrained, Linear, ObjectiveError
from arnpg.objective_check import check_objective

LIMIT = Constrained("r1", at_least={"r2": 3.0})


def test_rewards_outside_the_unit_interval_are_told():
    model = MDP(np.ones((1, 2, 1)), {"a": [[0.0, 5.0]]}, discount=0.5)
    assert "rewards lie outside [0, 1]: the rates of the paper hold for the rescaled problem" in model.notes


def test_what_offers_itself_as_an_array_is_one():
    class Table:
        def __init__(self, values):
            self.values = values

        def __array__(self, dtype=None, copy=None):
            return np.asarray(self.values, dtype)

    model = MDP(Table([[[1.0], [1.0]]]), {"a": Table([[0, 1]])}, discount=0.5)
    assert arnpg.solve(model, Linear({"a": 1.0})).objective == pytest.approx(2.0, abs=1e-14)
    with pytest.raises(arnpg.ModelError, match="dtype object"):
        MDP(np.array([[[object()]]]), {"a": [[0.0]]}, discount=0.5)


def test_one_objective_is_plain_npg():
    """``log pi' = log pi + eta Q / (1 - gamma) - log Z`` by hand; 1e-12, as twenty steps of rounding."""
    mdp, steps = dense_model(5, 3, 1, seed=2), 20
    found = arnpg.solve(mdp, Linear({mdp.names[0]: 1.0}), method="mo-npg", step_size=0.3, steps=steps, gap=1e-12)
    policy, reward, gamma = np.full((5, 3), 1 / 3), mdp.rewards[0], mdp.discount
    values = []
    for _ in range(len(found.trace.values) + 1):
        chain = np.einsum("sa,sat->st", policy, mdp.transitions)
        state_values = np.linalg.solve(np.eye(5) - gamma * chain, (policy * reward).sum(axis=1))
        values.append(mdp.initial @ state_values)
        raised = policy * np.exp(0.3 * (reward + gamma * mdp.transitions @ state_values) / (1 - gamma))
        policy = raised / raised.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.trace.values[:, 0], values[1:], rtol=1e-12)


@pytest.mark.parametrize("method", ["arnpg", "arnpg-epd", "npg-pd", "crpo"])
def test_states_never_visited_leave_no_trace_and_no_division_by_zero(method):
    """The third state is never reached; its rewards would be worth any detour."""
    transitions = np.zeros((3, 2, 3))
    transitions[:2, 0, 0] = transitions[:2, 1, 1] = transitions[2, :, 2] = 1.0
    rewards = {"r1": [[1.0, 0.0], [1.0, 0.0], [9.0, 9.0]], "r2": [[0.0, 1.0], [0.0, 1.0], [9.0, 9.0]]}
    mdp = MDP(transitions, rewards, discount=0.9, initial=[0.5, 0.5, 0.0])
    settings = {} if method == "arnpg" else {"steps": 50}
    found = arnpg.solve(mdp, LIMIT, method=method, **settings)
    assert np.isfinite(found.policy.probabilities).all()
    assert found.bound == pytest.approx(7.0, rel=1e-6)  # 10 in all, of which 3 go to the limit
    assert found.objective <= 7.0 + 1e-9 + found.violation


def test_a_dual_variable_that_runs_away_is_told():
    mdp = arnpg.examples.random_cmdp()
    wild = arnpg.solve(mdp, LIMIT, method="npg-pd", dual_step=1e4, steps=20)
    assert any("the dual variable of r2 >= 3 reached" in note and "lower dual_step" in note for note in wild.notes)
    assert np.isfinite(wild.trace.dual).all()
    tame = arnpg.solve(mdp, LIMIT, method="npg-pd", steps=20)
    assert not any("dual variable" in note for note in tame.notes)


def test_a_function_that_changes_from_call_to_call_is_found():
    calls = itertools.count()

    def impure(values):
        return -((values - next(calls)) ** 2).sum()

    with pytest.raises(ObjectiveError, match="different answers at the same values .* make it pure"):
        check_objective(Concave(impure), ["a", "b"])
    check_objective(Concave(lambda values: -jnp.sum(values**2)), ["a", "b"])
