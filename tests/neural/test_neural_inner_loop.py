"""The neural inner loop: its laws, its accounting, and that it is a pure function of its work."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arnpg.envs import Acrobot, CartPole, Pendulum
from arnpg.envs.acrobot import CONSTRAINED
from arnpg.envs.env import AbstractEnvironment, DiscreteActions, Objectives, named
from arnpg.neural.advantages import MonteCarlo
from arnpg.neural.combine import AsTheyAre
from arnpg.neural.inner_loop import NeuralInnerLoop
from arnpg.neural.natural_gradient import FixedStep, NaturalGradient, TrustRegion
from arnpg.neural.networks import Network, make_policy
from arnpg.neural.penalty import AnchorPenalty
from arnpg.neural.rollout import Rollout
from arnpg.neural.update import Samples
from arnpg.neural.values import EpisodeTotal, PathTotal

KEY = jax.random.key(5)
SMALL = Network((16,))
RNG = np.random.default_rng(8)
TRANSITIONS = RNG.dirichlet(np.ones(3), (3, 2))
REWARDS = RNG.uniform(size=(2, 3, 2))
STOP = 0.3


class TabularEnvironment(AbstractEnvironment):
    """Three states seen as unit vectors; every step ends the episode with probability `STOP`."""

    objectives: Objectives = eqx.field(
        static=True,
        converter=named,
        default=tuple((str(i), lambda t, i=i: jnp.asarray(REWARDS)[i, t.state, t.action]) for i in range(2)),
    )
    time_limit: int = eqx.field(static=True, default=10_000)
    observation_size: ClassVar[int] = 3
    actions: ClassVar[DiscreteActions] = DiscreteActions(2)

    def initial(self, key):
        return jax.random.randint(key, (), 0, 3)

    def observe(self, physics):
        return jax.nn.one_hot(physics, 3, dtype=jnp.float32)

    def advance(self, physics, action, key):
        first, second = jax.random.split(key)
        bounds = jnp.cumsum(jnp.asarray(TRANSITIONS, jnp.float32)[physics, action])[:-1]
        return (jax.random.uniform(first) >= bounds).sum(dtype=jnp.int32), jax.random.uniform(second) < STOP


def exact_micro_step(log_pi, log_anchor, reward, discount, alpha, step_size):
    """Equation (6) in closed form, `log pi + eta / (1 - gamma) A`, up to a constant a state."""
    pi, penalty = np.exp(log_pi), alpha * (log_pi - log_anchor)
    matrix = np.einsum("sa,sak->sk", pi, TRANSITIONS) * discount * (1 - STOP)
    value = np.linalg.solve(np.eye(3) - matrix, (pi * (reward - penalty)).sum(1))
    logits = log_pi + step_size / (1 - discount) * (
        reward - penalty + discount * (1 - STOP) * np.einsum("sak,k->sa", TRANSITIONS, value)
    )
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_one_hot_policy_takes_the_tabular_step(alpha):
    inner = NeuralInnerLoop(
        TabularEnvironment(),
        policy=Network(()),
        critic=SMALL,
        rollout=Rollout(40, 1000),
        update=FixedStep(0.05, NaturalGradient(damping=1e-5)),
        penalty=AnchorPenalty(alpha),
        discount=0.9,
        combine=AsTheyAre(),
    )
    anchor, work = eqx.filter_jit(inner.start)(KEY)
    weights = np.array([1.0, -0.4])
    policy, _, info = eqx.filter_jit(inner.improve)(anchor, jnp.asarray(weights), 3, work)
    log_anchor = np.asarray(jax.nn.log_softmax(anchor(jnp.eye(3)).logits), np.float64)
    exact = log_anchor
    for _ in range(3):
        exact = exact_micro_step(exact, log_anchor, np.tensordot(weights, REWARDS, 1), 0.9, alpha, 0.05)
    ours = jax.nn.log_softmax(policy(jnp.eye(3)).logits)
    # 6,000 samples a pair and step: a deviation near .005 a step; the policy moves by .2 to .6.
    np.testing.assert_allclose(ours, exact, atol=0.03)
    assert np.abs(exact - log_anchor).max() > 0.15
    assert info.env_steps == 3 * 40_000


@pytest.mark.parametrize("share", [1.0, 0.2])
@pytest.mark.parametrize("env", [CartPole(), Pendulum()], ids=["softmax", "gaussian"])
def test_an_accepted_step_is_within_its_limit(env, share):
    policy = make_policy(KEY, SMALL, env.observation_size, env.actions)
    batch = Rollout(5, 60).collect(env, policy, KEY)
    flat = lambda x: x.reshape(-1, *x.shape[2:])  # noqa: E731
    update = eqx.filter_jit(TrustRegion(max_kl=0.01, natural_gradient=NaturalGradient(share=share)).__call__)
    for index in range(10):
        key = jax.random.fold_in(KEY, index)
        samples = Samples(flat(batch.observations), flat(batch.actions), jax.random.normal(key, (300,)), jnp.zeros(2))
        new, _, info = update(policy, policy, None, samples, 0.98, key)
        kl = policy(samples.observations).kl(new(samples.observations)).mean()
        assert 0 < kl <= 0.01 * (1 + 1e-4)  # computed twice in float32
        np.testing.assert_allclose(kl, info.kl, rtol=1e-3)
        assert info.gain > 0


def test_no_advantage_no_step():
    env = CartPole()
    policy = make_policy(KEY, SMALL, 4, env.actions)
    batch = Rollout(2, 20).collect(env, policy, KEY)
    samples = Samples(batch.observations.reshape(-1, 4), batch.actions.reshape(-1), jnp.zeros(40), jnp.zeros(2))
    new, _, info = TrustRegion()(policy, policy, None, samples, 0.98, KEY)
    assert info.fraction == 0
    assert eqx.tree_equal(new, policy)


def loop(**settings):
    return NeuralInnerLoop(CartPole(), policy=SMALL, critic=SMALL, rollout=Rollout(4, 50), **settings)


def test_the_evaluations_batch_is_the_next_micro_steps():
    inner = loop()
    improve, evaluate = eqx.filter_jit(inner.improve), eqx.filter_jit(inner.evaluate)
    policy, work = inner.start(KEY)
    _, work = evaluate(policy, work)
    seen = work.batch
    new, after, info = improve(policy, jnp.array([1.0, 0.0]), 1, work)
    assert eqx.tree_equal(after.batch, seen)
    assert info.env_steps == 200
    _, work = evaluate(new, after)
    assert not np.array_equal(work.batch.observations, seen.observations)
    newer, work, info = improve(new, jnp.array([1.0, 0.0]), 3, work)
    assert info.env_steps == 3 * 200
    _, _, info = improve(policy, jnp.array([1.0, 0.0]), 1, work)
    assert info.env_steps == 200  # back to an older anchor: sampled anew


def test_the_first_micro_step_does_not_depend_on_alpha():
    policy, work = loop().start(KEY)
    results = [
        eqx.filter_jit(loop(penalty=AnchorPenalty(a)).improve)(policy, jnp.array([1.0, 0.1]), 1, work)[0]
        for a in (0.0, 5.0)
    ]
    for one, other in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_rollout_resets_inside_a_path():
    batch = Rollout(6, 200).collect(CartPole(time_limit=40), make_policy(KEY, SMALL, 4, CartPole.actions), KEY)
    over = np.asarray(batch.over)[:-1]
    following, expected = np.asarray(batch.observations[1:]), np.asarray(batch.next_observations[:-1])
    np.testing.assert_array_equal(following[~over], expected[~over])
    assert over.any()
    assert np.abs(following[over]).max() <= 0.05
    assert np.asarray(batch.truncated).any()
    assert np.asarray(batch.terminated).any()


def test_same_key_same_run_and_seeds_in_one_batch():
    inner = loop(values=(EpisodeTotal(), PathTotal()))

    def run(key):
        policy, work = inner.start(key)
        before, work = inner.evaluate(policy, work)
        policy, work, info = inner.improve(policy, jnp.array([1.0, -0.1]), 2, work)
        after, work = inner.evaluate(policy, work)
        return before, after, info

    keys = jax.random.split(KEY, 3)
    alone, again = eqx.filter_jit(run)(keys[1]), eqx.filter_jit(run)(keys[1])
    assert eqx.tree_equal(alone, again)
    together = eqx.filter_jit(jax.vmap(run))(keys)
    np.testing.assert_allclose(together[0][1], alone[0], rtol=1e-4)
    assert together[2].env_steps.tolist() == [400, 400, 400]


def test_work_is_all_that_a_run_continues_from():
    inner = loop()
    policy, work = inner.start(KEY)
    improve = eqx.filter_jit(inner.improve)
    policy, work, _ = improve(policy, jnp.array([1.0, 0.0]), 2, work)
    arrays = jax.tree.map(lambda x: x if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else np.array(x), work)
    restored = jax.tree.map(jnp.asarray, arrays)
    one, other = (improve(policy, jnp.array([1.0, 0.0]), 2, w) for w in (work, restored))
    assert eqx.tree_equal(one, other)


def test_a_cost_that_is_never_paid_is_no_obstacle():
    env = Acrobot({**CONSTRAINED, "nothing": lambda t: jnp.zeros(())})
    # Without bootstraps, or an untrained critic would make its targets vary.
    inner = NeuralInnerLoop(
        env, policy=SMALL, critic=SMALL, rollout=Rollout(4, 60), advantages=MonteCarlo(bootstrap=False)
    )
    policy, work = inner.start(KEY)
    policy, work, _ = eqx.filter_jit(inner.improve)(policy, jnp.array([1.0, -0.1, -0.1, -3.0]), 2, work)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((policy, work.learnt)))
    assert work.learnt.diagnostics.explained[3] == 0


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match=r"values must hold one part for each of \('upright', 'distance'\), got 1"):
        loop(values=(PathTotal(),))
    with pytest.raises(ValueError, match=r"discount must lie in \[0, 1\), got 1"):
        loop(discount=1)
    with pytest.raises(ValueError, match="paths must be at least 1, got 0; a batch holds paths x steps"):
        Rollout(paths=0)
    with pytest.raises(ValueError, match="minibatch must be at least 1, got 0"):
        loop(fit=NeuralInnerLoop(CartPole()).fit.__class__(minibatch=0))
    with pytest.raises(ValueError, match="max_kl must be a finite number > 0, got 0"):
        TrustRegion(max_kl=0)
