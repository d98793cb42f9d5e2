"""The inner loop on host environments: units, actors, batches, and that a run is a function of its key."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from host_environments import Walk

from arnpg.envs import BoxActions, DiscreteActions, make_host
from arnpg.errors import NumericalError, SettingsError
from arnpg.neural.host_inner_loop import HostInnerLoop
from arnpg.neural.host_rollout import collect_on_host
from arnpg.neural.networks import Network, make_policy
from arnpg.neural.numpy_actor import NumpyActor
from arnpg.neural.rollout import Rollout
from arnpg.neural.standardise import Standardised, Statistics
from arnpg.neural.values import Discounted, EpisodeTotal

KEY = jax.random.key(3)
ENV = make_host(Walk, {"place": "reward", "effort": "info:cost"}, time_limit=8, options={"noise": 0.3, "length": 3.0})
SMALL = Network((8,), jnp.tanh)


def loop(**settings):
    return HostInnerLoop(ENV, policy=SMALL, critic=SMALL, rollout=Rollout(6, 20), **settings)


@pytest.fixture(scope="module")
def collected():
    """The batch of the initial policy."""
    inner = loop()
    policy, work = inner.start(KEY)
    values, work = inner.evaluate(policy, work)
    inner.close()
    return policy, np.asarray(values), work


def test_statistics_are_those_of_all_rows():
    rows = np.random.default_rng(0).normal([1.0, -50.0], [0.1, 20.0], (1000, 2))
    found = Statistics.none(2)
    for part in np.split(rows, [10, 200, 201]):
        found = found.update(part)
    np.testing.assert_allclose(found.count, 1000)
    np.testing.assert_allclose(found.mean, rows.mean(0), rtol=1e-5)  # kept in float32
    np.testing.assert_allclose(found.variance, rows.var(0), rtol=1e-5)


@pytest.mark.parametrize("activation", [jnp.tanh, jax.nn.relu, jax.nn.gelu], ids=["tanh", "relu", "gelu"])
@pytest.mark.parametrize("actions", [BoxActions(2, -1.0, 1.0), DiscreteActions(4)], ids=["gaussian", "softmax"])
@pytest.mark.parametrize("deterministic", [False, True])
def test_the_actor_in_numpy_is_the_policy(activation, actions, deterministic):
    network = make_policy(KEY, Network((16, 16), activation), 5, actions)
    policy = Standardised(network, jnp.arange(5.0), jnp.full(5, 0.5))
    observations = np.random.default_rng(1).normal(size=(50, 5)).astype(np.float32)
    noise = np.asarray(policy.noise(KEY, (50,)))
    distribution = policy(observations)
    expected = distribution.mode() if deterministic else distribution.sample(noise)
    found = NumpyActor(policy, deterministic)(observations, noise)
    np.testing.assert_allclose(found, expected, atol=1e-5)  # float32 sums in another order


def test_a_batch_is_what_the_environments_did(collected):
    """Rewards, flags and episode totals of a recorded batch, path by path and step by step in plain Python."""
    policy, _, work = collected
    with ENV.open(6, 0) as live:
        batch = collect_on_host(Rollout(6, 20), live, policy, KEY)
    places, following = batch.observations[..., 0], batch.next_observations[..., 0]
    totals, discounted = [], []
    for path in range(6):
        episode, age, over = [], 0, False
        for t in range(20):
            age += 1
            assert batch.rewards[t, path, 0] == following[t, path]
            np.testing.assert_allclose(batch.rewards[t, path, 1], min(abs(batch.actions[t, path, 0]), 1.0), atol=1e-6)
            ended = following[t, path] >= 3.0
            assert batch.terminated[t, path] == ended
            assert batch.truncated[t, path] == (age == 8 and not ended)
            if not over:
                episode.append(batch.rewards[t, path])
            over |= bool(batch.over[t, path])
            age = 0 if batch.over[t, path] else age
            if t < 19 and not batch.over[t, path]:
                assert places[t + 1, path] == following[t, path]
            elif t < 19:
                assert 0 <= places[t + 1, path] <= 1  # where every episode begins
        totals.append(np.sum(episode, axis=0))
        future = 0.0 if batch.terminated[len(episode) - 1, path] else 0.5 ** len(episode)
        value = work.learnt.critics(batch.next_observations[len(episode) - 1, path])[1]
        discounted.append(sum(0.5**t * r[1] for t, r in enumerate(episode)) + future * value)
    vector = loop(values=(EpisodeTotal(), Discounted(0.5))).value_vector(work.learnt.critics, batch)
    np.testing.assert_allclose(vector[0], np.mean(totals, axis=0)[0], rtol=1e-5)
    np.testing.assert_allclose(vector[1], np.mean(discounted), rtol=1e-5)


def test_the_policy_keeps_the_units_of_its_own_batch(collected):
    policy, _, work = collected
    inner = loop()
    new, after, info = inner.improve(policy, np.array([1.0, -0.1]), 1, work)
    np.testing.assert_array_equal(new.shift, work.statistics.mean)
    assert int(info.env_steps) == 120  # the evaluation's batch, taken over
    np.testing.assert_array_equal(after.batch.observations, work.batch.observations)
    _, later, info = inner.improve(new, np.array([1.0, -0.1]), 2, after)
    assert int(info.env_steps) == 240
    assert float(later.statistics.count) == 3 * 120
    inner.close()


def test_the_same_key_is_the_same_run_in_used_and_in_fresh_environments():
    runs = []
    inner = loop()
    for current in (inner, inner, loop()):
        policy, work = current.start(KEY)
        values, work = current.evaluate(policy, work)
        policy, work, _ = current.improve(policy, np.array([1.0, 0.0]), 2, work)
        again, _ = current.evaluate(policy, work)
        runs.append((values, again))
    inner.close()
    for other in runs[1:]:
        for one, two in zip(runs[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_environments_are_opened_once_for_all_batches():
    """The loop takes a run's tree apart and builds it again for every call; the environments are still known."""
    inner = loop()
    policy, work = inner.start(KEY)
    for _ in range(3):
        again = jax.tree.map(lambda leaf: leaf, inner)
        assert again.env is not inner.env
        _, work = again.evaluate(policy, work)
    assert len(inner.live._idle) == 1
    inner.close()


def test_gymnasiums_own_environments_with_discrete_actions():
    env = make_host("CartPole-v1", time_limit=30)
    inner = HostInnerLoop(env, policy=SMALL, critic=SMALL, rollout=Rollout(3, 40))
    policy, work = inner.start(KEY)
    values, work = inner.evaluate(policy, work)
    assert work.batch.actions.dtype == np.int32
    assert 8 <= values[0] <= 30
    inner.close()
    assert isinstance(gymnasium.make("CartPole-v1").action_space, gymnasium.spaces.Discrete)


def test_what_is_refused():
    with pytest.raises(SettingsError, match="rollout.steps must be at least the time limit of Walk, 8, got 5"):
        HostInnerLoop(ENV, rollout=Rollout(2, 5))
    inner = loop()
    policy, work = inner.start(KEY)
    broken = jax.tree.map(lambda leaf: leaf * jnp.nan, policy)
    with pytest.raises(NumericalError, match="the policy's action for environment 0 at step 0 of the batch is"):
        inner.evaluate(broken, work)
