"""Laws of Algorithm 1: the closed form, its convergence, and the fundamental inequality of Proposition 1."""

import exactly
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arnpg.tabular.exact import ExactInnerLoop, occupancy

WEIGHTS = np.array([1.0, 0.4, -0.3])


def improve(mdp, anchor, *, step_size, regularisation, micro_steps):
    inner = ExactInnerLoop(mdp, step_size=step_size, regularisation=regularisation)
    with jax.enable_x64(True):
        policy, _, info = inner.improve(inner.evaluated(jnp.log(anchor)), jnp.asarray(WEIGHTS), micro_steps, None)
        return np.exp(np.asarray(policy.log_policy)), np.asarray(policy.state_values @ mdp.initial), float(info.kl)


def test_values_and_occupancy_follow_their_definitions(small_mdp):
    """``V_i = <d, r_i> / (1 - gamma)`` (Section 2), for the occupancy and the values of the inner loop."""
    table = exactly.random_policy(np.random.default_rng(0), small_mdp)
    inner = ExactInnerLoop(small_mdp, step_size=1.0, regularisation=1.0)
    with jax.enable_x64(True):
        policy = inner.evaluated(jnp.log(table))
        joint = np.asarray(occupancy(inner, policy))
        values = np.asarray(inner.evaluate(policy, None)[0])
    np.testing.assert_allclose(joint, exactly.occupancy(small_mdp, table), atol=1e-14)
    np.testing.assert_allclose(np.tensordot(small_mdp.rewards, joint, 2) / 0.3, values, rtol=1e-13)


@pytest.mark.parametrize("eta_alpha", [0.3, 1.0])
def test_micro_step_is_the_fisher_pseudo_inverse_step(small_mdp, eta_alpha):
    """``theta + eta F^+ grad V~`` with an explicit Fisher matrix equals the closed form, second micro step included."""
    draws = np.random.default_rng(1)
    anchor, alpha = exactly.random_policy(draws, small_mdp), 0.5
    eta = eta_alpha * (1 - small_mdp.discount) / alpha
    reward = np.tensordot(WEIGHTS, small_mdp.rewards, 1)

    def regularised_value(theta):
        policy = jax.nn.softmax(theta, axis=1)
        under = jnp.einsum("sa,sat->st", policy, small_mdp.transitions)
        per_state = jnp.sum(policy * (reward - alpha * (jnp.log(policy) - jnp.log(anchor))), axis=1)
        solved = jnp.linalg.solve(jnp.eye(small_mdp.states) - small_mdp.discount * under, per_state)
        return jnp.asarray(small_mdp.initial) @ solved

    with jax.enable_x64(True):
        theta = jnp.log(anchor)
        for _ in range(2):
            table = np.asarray(jax.nn.softmax(theta, axis=1))
            scores = np.asarray(jax.jacobian(lambda t: jax.nn.log_softmax(t, axis=1).ravel())(theta))
            scores = scores.reshape(table.size, table.size)
            fisher = scores.T @ (exactly.occupancy(small_mdp, table).ravel()[:, None] * scores)
            gradient = np.asarray(jax.grad(regularised_value)(theta)).ravel()
            theta = theta + eta * (np.linalg.pinv(fisher, rcond=1e-10) @ gradient).reshape(table.shape)
        expected = np.asarray(jax.nn.softmax(theta, axis=1))
    found, _, _ = improve(small_mdp, anchor, step_size=eta, regularisation=alpha, micro_steps=2)
    # 1e-9: the pseudo-inverse of a Fisher matrix with condition number near 1e4 costs about six digits of sixteen
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_one_micro_step_does_not_depend_on_alpha(small_mdp):
    """With ``t_k = 1`` the divergence has zero gradient at the anchor (end of Section 3)."""
    anchor = exactly.random_policy(np.random.default_rng(2), small_mdp)
    first = improve(small_mdp, anchor, step_size=0.5, regularisation=1e-3, micro_steps=1)[0]
    second = improve(small_mdp, anchor, step_size=0.5, regularisation=0.6, micro_steps=1)[0]
    np.testing.assert_allclose(first, second, atol=1e-15)


def test_proposition_1_holds_with_equality_at_convergence(small_mdp):
    """The hidden mirror step is taken on an affine set and its optimum is interior, so the inequality is tight."""
    draws = np.random.default_rng(4)
    anchor, alpha = exactly.random_policy(draws, small_mdp), 0.3
    eta, scale = (1 - small_mdp.discount) / alpha, alpha / (1 - small_mdp.discount)
    found, values, kl = improve(small_mdp, anchor, step_size=eta, regularisation=alpha, micro_steps=150)
    assert kl == pytest.approx(exactly.divergence(small_mdp, found, found, anchor), abs=1e-12)
    left = WEIGHTS @ values - scale * kl
    for _ in range(200):
        other = exactly.random_policy(draws, small_mdp, 0.3)
        drift = exactly.divergence(small_mdp, other, other, anchor) - exactly.divergence(small_mdp, other, other, found)
        right = WEIGHTS @ exactly.values(small_mdp, other) - scale * drift
        # 1e-12: values of order 3 through a solve with condition number 1 / (1 - gamma)
        assert left == pytest.approx(right, abs=1e-12)


@pytest.mark.parametrize("epsilon", [1e-1, 1e-3])
def test_proposition_1_at_the_stated_number_of_micro_steps(small_mdp, epsilon):
    """``t_k >= log(5 |r~| / ((1 - gamma)^2 eps)) / (1 - gamma) + 1`` leaves at most ``eps``."""
    draws = np.random.default_rng(5)
    anchor, alpha, gamma = exactly.random_policy(draws, small_mdp, 0.2), 0.2, small_mdp.discount
    size = np.abs(np.tensordot(WEIGHTS, small_mdp.rewards, 1)).max()
    count = int(np.ceil(np.log(5 * size / ((1 - gamma) ** 2 * epsilon)) / (1 - gamma) + 1))
    found, values, kl = improve(
        small_mdp, anchor, step_size=(1 - gamma) / alpha, regularisation=alpha, micro_steps=count
    )
    left = WEIGHTS @ values - alpha * kl / (1 - gamma)
    for _ in range(100):
        other = exactly.random_policy(draws, small_mdp, 0.3)
        drift = exactly.divergence(small_mdp, other, other, anchor) - exactly.divergence(small_mdp, other, other, found)
        assert left >= WEIGHTS @ exactly.values(small_mdp, other) - alpha * drift / (1 - gamma) - epsilon


@pytest.mark.parametrize("eta_alpha", [0.25, 1.0])
def test_micro_steps_converge_linearly(small_mdp, eta_alpha):
    """Lemma 3: ``|log pi* - log pi^(t+1)| <= 2 C / alpha (1 - eta alpha)^t``, from the anchor."""
    anchor, alpha = exactly.random_policy(np.random.default_rng(6), small_mdp), 0.4
    gamma = small_mdp.discount
    eta = eta_alpha * (1 - gamma) / alpha
    optimum = improve(small_mdp, anchor, step_size=(1 - gamma) / alpha, regularisation=alpha, micro_steps=300)[0]
    size = np.abs(np.tensordot(WEIGHTS, small_mdp.rewards, 1)).max()
    far = np.abs(np.log(optimum / anchor)).max()
    constant = gamma * size / (1 - gamma) + 2 * alpha * (1 - eta * alpha / (1 - gamma)) * far
    for steps in (1, 5, 20, 60):
        found = improve(small_mdp, anchor, step_size=eta, regularisation=alpha, micro_steps=steps)[0]
        error = np.abs(np.log(optimum / found)).max()
        assert error <= 2 * constant / alpha * (1 - eta * alpha) ** (steps - 1) + 1e-12


def test_huge_steps_stay_finite(small_mdp):
    """Log-space: logits of 1e4 and more give no NaN, and the policy is the greedy one."""
    anchor = exactly.random_policy(np.random.default_rng(7), small_mdp)
    found, values, kl = improve(small_mdp, anchor, step_size=1e5, regularisation=1e-6, micro_steps=5)
    assert np.isfinite(values).all()
    assert np.isfinite(kl)
    np.testing.assert_allclose(found.max(axis=1), 1.0)
