"""Advantages against double loops written by hand; values; critics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arnpg.neural.advantages import GeneralisedAdvantages, MonteCarlo, path_values
from arnpg.neural.critics import AdamFit
from arnpg.neural.networks import Critics, Network
from arnpg.neural.rollout import Batch
from arnpg.neural.values import Discounted, EpisodeTotal, PathTotal

STEPS, PATHS, COUNT, LIMIT, DISCOUNT = 13, 4, 3, 5, 0.9


@pytest.fixture(scope="module")
def batch():
    """Episodes that end by themselves, by the limit, by both at once, and at the path's end."""
    rng = np.random.default_rng(0)
    terminated, truncated = np.zeros((2, STEPS, PATHS), bool)
    for path in range(PATHS):
        age = 0
        for t in range(STEPS):
            age += 1
            terminated[t, path] = rng.uniform() < 0.15 * path
            truncated[t, path] = age == LIMIT
            age = 0 if terminated[t, path] or truncated[t, path] else age
    observations = rng.normal(size=(STEPS, PATHS, 2))
    following = np.concatenate([observations[1:], rng.normal(size=(1, PATHS, 2))])
    over = terminated | truncated
    following[over] = rng.normal(size=(over.sum(), 2))
    rewards = rng.normal(size=(STEPS, PATHS, COUNT))
    arrays = (jnp.asarray(x, jnp.float32) for x in (observations, np.zeros((STEPS, PATHS)), rewards, following))
    return Batch(*arrays, jnp.asarray(terminated), jnp.asarray(truncated))


@pytest.fixture(scope="module")
def critics():
    built = Critics.build(jax.random.key(0), Network((6,)), 2, COUNT)
    return Critics(built.networks, jnp.array([1.0, -2.0, 0.5]), jnp.array([2.0, 1.0, 3.0]))


def hand_written(batch, critics, decay):
    """`sum_k (gamma lambda)^k delta_{t+k}` to the end of the episode or of the path, one t at a time."""
    values, later = (np.asarray(critics(x)) for x in (batch.observations, batch.next_observations))
    terminated, over = np.asarray(batch.terminated), np.asarray(batch.over)
    advantages = np.zeros((STEPS, PATHS, COUNT))
    for path in range(PATHS):
        for t in range(STEPS):
            for k in range(STEPS - t):
                u = t + k
                value = 0 if terminated[u, path] else later[u, path]
                delta = batch.rewards[u, path] + DISCOUNT * value - values[u, path]
                advantages[t, path] += (DISCOUNT * decay) ** k * np.asarray(delta)
                if over[u, path]:
                    break
    return advantages, values


@pytest.mark.parametrize("decay", [0.0, 0.7, 1.0])
def test_gae_is_the_double_loop(batch, critics, decay):
    expected, values = hand_written(batch, critics, decay)
    advantages, targets = GeneralisedAdvantages(decay)(batch, *path_values(critics, batch, LIMIT), DISCOUNT)
    np.testing.assert_allclose(advantages, expected, atol=2e-5)  # float32
    np.testing.assert_allclose(targets, expected + values, atol=2e-5)


def test_monte_carlo_is_gae_with_decay_one(batch, critics):
    expected, values = hand_written(batch, critics, 1.0)
    advantages, targets = MonteCarlo()(batch, *path_values(critics, batch, LIMIT), DISCOUNT)
    np.testing.assert_allclose(advantages, expected, atol=2e-5)
    np.testing.assert_allclose(targets, expected + values, atol=2e-5)


def test_monte_carlo_as_the_scripts(batch, critics):
    values, bootstrap = path_values(critics, batch, LIMIT)
    _, targets = MonteCarlo(bootstrap=False, through_resets=True)(batch, values, bootstrap, DISCOUNT)
    rewards = np.asarray(batch.rewards)
    expected = [sum(DISCOUNT ** (u - t) * rewards[u] for u in range(t, STEPS)) for t in range(STEPS)]
    np.testing.assert_allclose(targets, expected, atol=2e-5)


def test_bootstraps_are_there_where_a_path_is_cut_and_nowhere_else(batch, critics):
    _, bootstrap = path_values(critics, batch, LIMIT)
    expected = np.where(np.asarray(batch.cut)[..., None], np.asarray(critics(batch.next_observations)), 0)
    np.testing.assert_allclose(bootstrap, expected, atol=1e-6)
    assert np.asarray(batch.cut & batch.truncated).sum() > 4


def test_values_of_a_batch(batch, critics):
    _, bootstrap = path_values(critics, batch, LIMIT)
    rewards, over, cut = (np.asarray(x) for x in (batch.rewards[..., 0], batch.over, batch.cut))
    totals, discounted = [], []
    for path in range(PATHS):
        end = np.flatnonzero(over[:, path])[0] if over[:, path].any() else STEPS - 1
        totals.append(rewards[: end + 1, path].sum())
        tail = DISCOUNT ** (end + 1) * float(bootstrap[end, path, 0]) * cut[end, path]
        discounted.append(sum(DISCOUNT**t * rewards[t, path] for t in range(end + 1)) + tail)
    arguments = batch.rewards[..., 0], bootstrap[..., 0], batch, DISCOUNT
    np.testing.assert_allclose(PathTotal()(*arguments).mean(), rewards.sum(0).mean(), atol=1e-5)
    np.testing.assert_allclose(EpisodeTotal()(*arguments).mean(), np.mean(totals), atol=1e-5)
    np.testing.assert_allclose(Discounted()(*arguments).mean(), np.mean(discounted), atol=1e-5)


def test_critics_learn_objectives_of_any_scale_and_stand_one_that_is_zero():
    observations = jax.random.normal(jax.random.key(1), (2000, 2))
    targets = jnp.stack([50 * observations[:, 0] + 300, 0.01 * observations[:, 1], jnp.zeros(2000)], -1)
    fit, critics = AdamFit(), Critics.build(jax.random.key(2), Network((32, 32)), 2, 3)
    state, call = fit.start(critics), jax.jit(fit.__call__)
    for index in range(40):
        critics, state = call(critics, state, observations, targets, jax.random.key(index))
    missed = ((critics(observations) - targets) ** 2).mean(0)
    assert missed[0] < 0.02 * 50**2
    assert missed[1] < 0.02 * 0.01**2
    assert missed[2] < 1e-5


def test_new_units_leave_the_critics_functions_alone(critics):
    observations = jax.random.normal(jax.random.key(1), (50, 2))
    targets = jnp.asarray(np.random.default_rng(0).normal(7, 4, (50, COUNT)), jnp.float32)
    frozen = AdamFit(learning_rate=0.0)
    moved, _ = frozen(critics, frozen.start(critics), observations, targets, jax.random.key(0))
    np.testing.assert_allclose(moved(observations), critics(observations), atol=1e-4)
    np.testing.assert_allclose(moved.centre, targets.mean(0), atol=1e-5)
