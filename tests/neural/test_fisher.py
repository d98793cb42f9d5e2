"""Fisher-vector products against the explicit matrix, and the distributions they are made of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from arnpg.envs.env import BoxActions, DiscreteActions
from arnpg.neural.fisher import factored_product, fisher_product, linearised_product, softmax_root
from arnpg.neural.natural_gradient import NaturalGradient, conjugate_gradients
from arnpg.neural.networks import Categorical, DiagonalGaussian, Network, make_policy, orthogonal

KEY = jax.random.key(3)
NETWORK = Network(hidden=(5, 4), activation=jnp.tanh)
OBSERVATIONS = jax.random.normal(jax.random.key(4), (30, 2))


def explicit_fisher(policy, observations, actions):
    """`E_s sum_a pi(a|s) grad log pi grad log pi^T`, one gradient at a time."""
    flat, unravel = ravel_pytree(policy)
    total = np.zeros((len(flat), len(flat)))
    for observation in observations:
        pi = jax.nn.softmax(policy(observation).logits)
        for action in range(actions):
            score = jax.grad(lambda th, o=observation, a=action: unravel(th)(o).log_prob(jnp.int32(a)))(flat)
            total += float(pi[action]) * np.outer(score, score)
    return total / len(observations)


@pytest.mark.parametrize("product", [factored_product, linearised_product, fisher_product])
@pytest.mark.parametrize("actions", [2, 3, 6])
def test_softmax_product_is_the_explicit_matrix(product, actions):
    policy = make_policy(KEY, NETWORK, 2, DiscreteActions(actions))
    flat, _ = ravel_pytree(policy)
    vectors = jax.random.normal(KEY, (3, len(flat)))
    expected = vectors @ explicit_fisher(policy, OBSERVATIONS, actions)
    ours = jax.vmap(product(policy, OBSERVATIONS))(vectors)
    np.testing.assert_allclose(ours, expected, atol=2e-5)  # float32


def test_gaussian_product_is_the_curvature_of_the_kl():
    policy = make_policy(KEY, NETWORK, 2, BoxActions(2, -1.0, 1.0))
    flat, unravel = ravel_pytree(policy)
    old = policy(OBSERVATIONS)
    hessian = jax.hessian(lambda th: old.kl(unravel(th)(OBSERVATIONS)).mean())(flat)
    vector = jax.random.normal(KEY, flat.shape)
    np.testing.assert_allclose(fisher_product(policy, OBSERVATIONS)(vector), hessian @ vector, atol=1e-4)


def test_a_gaussian_begins_with_the_deviation_of_its_settings():
    policy = make_policy(KEY, Network((8,), log_sd=-1.25), 2, BoxActions(3, -1.0, 1.0))
    np.testing.assert_array_equal(policy(OBSERVATIONS).log_sd, np.full((len(OBSERVATIONS), 3), -1.25))


@pytest.mark.parametrize("logits", [[0.3, -1.0, 2.0, 0.1], [0.0, -200.0, -200.0, -200.0], [-200.0, -90.0, 0.0, 5.0]])
def test_softmax_root_squares_to_the_metric(logits):
    pi = jax.nn.softmax(jnp.array([logits]))
    root = softmax_root(pi)[:, 0]
    np.testing.assert_allclose(root.T @ root, jnp.diag(pi[0]) - jnp.outer(pi[0], pi[0]), atol=1e-6)


def test_conjugate_gradients_solve_and_know_their_curvature():
    factor = jax.random.normal(KEY, (6, 6))
    matrix, target = factor @ factor.T + jnp.eye(6), jnp.arange(6.0)
    x, curvature = conjugate_gradients(lambda v: matrix @ v, target, 12)
    np.testing.assert_allclose(x, jnp.linalg.solve(matrix, target), rtol=2e-3, atol=1e-4)
    np.testing.assert_allclose(curvature, x @ matrix @ x, rtol=1e-3)


def test_conjugate_gradients_of_nothing_are_nothing():
    x, curvature = conjugate_gradients(lambda v: v, jnp.zeros(4), 10)
    np.testing.assert_array_equal(x, 0)
    assert curvature == 0


def test_inverse_distribution_function_draws_the_probabilities():
    pi = jnp.array([0.1, 0.0, 0.6, 0.3])
    noise = (jnp.arange(10_000) + 0.5) / 10_000
    drawn = Categorical(jnp.broadcast_to(jnp.log(pi), (10_000, 4))).sample(noise)
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 10_000, pi, atol=2e-4)


def test_sample_mode_entropy_of_a_gaussian():
    distribution = DiagonalGaussian(jnp.array([1.0, 2.0]), jnp.log(jnp.array([0.5, 3.0])))
    drawn = distribution.sample(jax.random.normal(KEY, (100_000, 2)))
    np.testing.assert_allclose(drawn.mean(0), distribution.mode(), atol=0.05)
    np.testing.assert_allclose(-distribution.log_prob(drawn).mean(), distribution.entropy(), atol=0.02)
    other = DiagonalGaussian(jnp.array([0.0, 1.0]), jnp.zeros(2))
    sampled = (distribution.log_prob(drawn) - other.log_prob(drawn)).mean()
    np.testing.assert_allclose(sampled, distribution.kl(other), rtol=0.02)


def test_network_settings():
    network = Network((8,), jnp.tanh, orthogonal, output_scale=0.1).build(KEY, 8, 3)
    np.testing.assert_allclose(network.weights[0] @ network.weights[0].T, 2 * jnp.eye(8), atol=1e-5)
    np.testing.assert_allclose(network.weights[1].T @ network.weights[1], 0.02 * jnp.eye(3), atol=1e-6)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(network))


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match=r"share must lie in \(0, 1\], got 0; 1 is the whole batch"):
        NaturalGradient(share=0)
    with pytest.raises(ValueError, match=r"hidden must hold whole numbers >= 1, got \(0,\)"):
        Network(hidden=(0,))
