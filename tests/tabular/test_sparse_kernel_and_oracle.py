"""The sparse kernel, evaluators and oracle against dense LAPACK and exact policy iteration."""

import numpy as np
import pytest
from scipy import sparse

from arnpg.tabular import assembly, sparse_checks
from arnpg.tabular.slots import SlotKernel, choose
from arnpg.tabular.sparse_evaluation import occupancy, solve_system
from arnpg.tabular.sparse_oracle import policy_iteration

DISCOUNTS = (0.5, 0.99, 0.9999)
SOLVERS = ("auto", "sweeps", "krylov", "direct")
IMPATIENT = [(d, s) for d in DISCOUNTS for s in SOLVERS if (d, s) != (0.9999, "sweeps")]


def garnet(n_states=200, n_actions=3, slots=4, seed=0):
    rng = np.random.default_rng(seed)
    probabilities = rng.exponential(size=(n_states, n_actions, slots))
    probabilities /= probabilities.sum(-1, keepdims=True)
    return rng.integers(0, n_states, (n_states, n_actions, slots), dtype=np.int32), probabilities


def walk(n_states=300):
    """A slow random walk on a line, drifting left or right."""
    here = np.arange(n_states)
    left, right = np.maximum(here - 1, 0), np.minimum(here + 1, n_states - 1)
    successors = np.stack([np.stack([left, here, right], 1)] * 2, 1).astype(np.int32)
    probabilities = np.broadcast_to([[0.4, 0.3, 0.3], [0.3, 0.3, 0.4]], (n_states, 2, 3)).copy()
    return successors, probabilities


MODELS = {"garnet": garnet, "walk": walk}


def kernel_from(successors, probabilities, allowed=None):
    return SlotKernel(assembly.from_slots(successors, probabilities), successors.shape[1], allowed)


def best_policy(kernel, reward, discount, tolerance=1e-8, guess=None):
    """The last bracket, and how many there were."""
    found = []
    for bracket in policy_iteration(kernel, reward, discount, guess=guess):
        found.append(bracket)
        if bracket.width(discount) <= tolerance:
            break
    return found[-1], len(found)


def upper(found, discount):
    return found.values + (found.high + found.slack) / (1 - discount)


def dense(successors, probabilities):
    n_states, n_actions, _ = successors.shape
    full = np.zeros((n_states, n_actions, n_states))
    states, actions = np.indices((n_states, n_actions))
    np.add.at(full, (states[..., None], actions[..., None], successors), probabilities)
    return full


def exact_optimum(full, reward, discount):
    here, policy = np.arange(len(full)), np.zeros(len(full), int)
    while True:
        values = np.linalg.solve(np.eye(len(full)) - discount * full[here, policy], reward[here, policy])
        gains = reward + discount * full @ values
        better = gains.max(1) > gains[here, policy] + 1e-11 * (1 + np.abs(values).max())
        if not better.any():
            return values
        policy = np.where(better, gains.argmax(1), policy)


def test_constructors_agree_and_are_canonical():
    successors, probabilities = garnet()
    full = dense(successors, probabilities)
    flat = full.reshape(-1, len(full))
    unsorted = sparse.coo_array(flat)
    order = np.random.default_rng(1).permutation(unsorted.nnz)
    halves = [np.concatenate([part[order], part[order], [0]]) for part in (unsorted.row, unsorted.col)]
    entries = np.concatenate([unsorted.data[order] / 2, unsorted.data[order] / 2, [0.0]])
    doubled = sparse.coo_array((entries, tuple(halves)), shape=flat.shape)
    matrices = [
        assembly.from_slots(successors, probabilities),
        sparse_checks.transitions(doubled, None, False, [])[0],
        assembly.from_matrices([sparse.csc_array(full[:, action]) for action in range(3)]),
    ]
    for matrix in matrices:
        kernel = SlotKernel(matrix, 3)
        assert kernel.matrix.has_canonical_format
        assert kernel.matrix.indices.dtype == np.int32
        assert kernel.matrix.data.min() > 0
        np.testing.assert_allclose(kernel.matrix.toarray(), flat, atol=1e-15)
        np.testing.assert_allclose(dense(*kernel.slots()), full, atol=1e-15)


def test_construction_leaves_the_given_arrays_alone():
    successors, probabilities = garnet()
    before = successors.copy(), probabilities.copy()
    kernel_from(successors, probabilities)
    np.testing.assert_array_equal(successors, before[0])
    np.testing.assert_array_equal(probabilities, before[1])


@pytest.mark.parametrize("n_states", [200, 60_000])
def test_products_match_gathers(n_states):
    """60,000 states cross the threshold to several blocks and threads."""
    successors, probabilities = garnet(n_states)
    kernel = kernel_from(successors, probabilities)
    values = np.random.default_rng(2).normal(size=n_states)
    backup = (probabilities * values[successors]).sum(-1)
    np.testing.assert_allclose(kernel.backup(values), backup, atol=1e-13)
    reward = np.random.default_rng(3).random(backup.shape)
    improvement = kernel.improve(reward, values, 0.9)
    np.testing.assert_allclose(improvement.values, (reward + 0.9 * backup).max(1), atol=1e-13)
    np.testing.assert_array_equal(improvement.policy, (reward + 0.9 * backup).argmax(1))
    policy = improvement.policy
    chain = kernel.chain(policy)
    np.testing.assert_allclose(chain.forward(values), choose(backup, policy), atol=1e-13)
    ones = np.ones(n_states)
    assert chain.backward(values) @ ones == pytest.approx(values.sum(), rel=1e-9, abs=1e-9)
    assert chain.backward(values) @ values == pytest.approx(values @ chain.forward(values), rel=1e-9)
    np.testing.assert_allclose(chain.forward(values, serial=True), chain.forward(values), atol=0)


def test_actions_that_are_not_allowed_are_never_chosen():
    successors, probabilities = garnet()
    allowed = np.random.default_rng(4).random((200, 3)) < 0.5
    allowed[:, 1] |= ~allowed.any(1)
    probabilities[~allowed] = 0.0
    kernel = kernel_from(successors, probabilities, allowed)
    reward = np.where(allowed, 0.0, 100.0)
    result, _ = best_policy(kernel, reward, 0.9)
    assert allowed[np.arange(200), result.policy].all()
    assert np.abs(upper(result, 0.9)).max() < 1e-6


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("discount", "solver"), IMPATIENT)
def test_evaluation_matches_lapack(model, discount, solver):
    successors, probabilities = MODELS[model]()
    kernel, full = kernel_from(successors, probabilities), dense(successors, probabilities)
    rng = np.random.default_rng(5)
    n_states, n_actions, _ = successors.shape
    policies = rng.integers(0, n_actions, n_states), rng.dirichlet(np.ones(n_actions), n_states)
    rewards = rng.random((n_states, 3))
    for policy in policies:
        chain = kernel.chain(policy)
        mixed = full[np.arange(n_states), policy] if policy.ndim == 1 else np.einsum("sa,sat->st", policy, full)
        exact = np.linalg.solve(np.eye(n_states) - discount * mixed, rewards)
        for reward, right in zip(rewards.T, exact.T, strict=True):
            found = solve_system(chain, discount, reward.copy(), tolerance=1e-11, solver=solver)
            error = np.abs(found.solution - right).max()
            assert error <= (found.residual + 1e-12 * np.abs(exact).max()) / (1 - discount)
        initial = rng.dirichlet(np.ones(n_states))
        visits = occupancy(chain, discount, initial, tolerance=1e-13, solver=solver)
        assert visits.solution.sum() == pytest.approx(1, abs=1e-8)
        np.testing.assert_allclose(visits.solution @ rewards / (1 - discount), initial @ exact, rtol=1e-6)


def test_a_good_guess_costs_one_product_and_is_not_written_to():
    chain = kernel_from(*garnet()).chain(np.zeros(200, int))
    right = np.random.default_rng(6).random(200)
    first = solve_system(chain, 0.99, right)
    guess = first.solution.copy()
    second = solve_system(chain, 0.99, right, guess=guess)
    assert (second.solver, second.products) == ("guess", 1)
    np.testing.assert_array_equal(guess, first.solution)


def test_rewards_that_are_zero_or_constant_break_no_solver():
    """Krylov iterations divide 0 by 0 where the first guess is exact."""
    chain = kernel_from(*walk()).chain(np.zeros(300, int))
    for constant in (0.0, 1.0):
        found = solve_system(chain, 0.99, np.full(300, constant), solver="krylov")
        np.testing.assert_allclose(found.solution, 100 * constant, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("discount", DISCOUNTS)
def test_oracle_brackets_the_optimum(model, discount):
    successors, probabilities = MODELS[model]()
    kernel, full = kernel_from(successors, probabilities), dense(successors, probabilities)
    reward = np.random.default_rng(7).normal(size=successors.shape[:2])
    tolerance = 1e-7 / (1 - discount)
    result, _ = best_policy(kernel, reward, discount, tolerance)
    assert result.width(discount) <= tolerance
    optimum = exact_optimum(full, reward, discount)
    here = np.arange(len(full))
    attained = np.linalg.solve(np.eye(len(full)) - discount * full[here, result.policy], reward[here, result.policy])
    # LAPACK's own rounding, amplified by the discount.
    slack = 1e-13 * np.abs(optimum).max() / (1 - discount)
    assert (upper(result, discount) >= optimum - slack).all()
    assert (attained >= upper(result, discount) - result.width(discount) - slack).all()


def test_oracle_stopped_early_is_still_certified():
    successors, probabilities = walk()
    kernel, full = kernel_from(successors, probabilities), dense(successors, probabilities)
    reward = np.random.default_rng(8).random(successors.shape[:2])
    result, _ = best_policy(kernel, reward, 0.99, tolerance=1.0)
    assert 1e-3 < result.width(0.99) < 1.0
    assert (upper(result, 0.99) >= exact_optimum(full, reward, 0.99) - 1e-9).all()


def test_a_warm_start_needs_fewer_steps():
    kernel = kernel_from(*garnet())
    reward = np.random.default_rng(9).random((200, 3))
    cold, steps = best_policy(kernel, reward, 0.99)
    _, warm = best_policy(kernel, reward, 0.99, guess=cold.improved)
    assert warm <= 2 < steps
