"""The sampled inner loop: unbiased estimates, geometric horizons, and the same from a user's own function.

Tolerance: four standard errors over independent keys, with fixed seeds; one entry of 60 would exceed it by chance in
one run of 260.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arnpg import Constrained, MaxMin, ModelError, ProportionalFair, SettingsError
from arnpg.loop import run, run_batch
from arnpg.recipes.tabular import METHODS
from arnpg.tabular.alias import alias_tables
from arnpg.tabular.sampled import SampledInnerLoop, estimate
from arnpg.tabular.simulator import Simulator, TableSimulator

KEYS, TRAJECTORIES = 200, 50  # over 60 sets of keys the root mean square of distance over error is 1.00


def policies(mdp, seed=1):
    """A policy and an anchor, both random."""
    raw = np.random.default_rng(seed).normal(size=(2, mdp.states, mdp.actions))
    return tuple(table - np.log(np.exp(table).sum(axis=1, keepdims=True)) for table in raw)


def exact(mdp, log_policy, log_anchor):
    """``Q_1..Q_m`` and ``E[sum_{t >= 1} gamma^t log(pi / pi_k)]`` by linear solves."""
    policy = np.exp(log_policy)
    tables = np.concatenate([mdp.rewards, (log_policy - log_anchor)[None]])
    chain = np.einsum("sa,sat->st", policy, mdp.transitions)
    right = np.einsum("sa,ksa->sk", policy, tables)
    values = np.linalg.solve(np.eye(mdp.states) - mdp.discount * chain, right)
    following = mdp.discount * np.einsum("sat,tk->ksa", mdp.transitions, values)
    return following + np.concatenate([mdp.rewards, np.zeros((1, mdp.states, mdp.actions))])


def estimates(simulator, log_policy, log_anchor):
    keys = jax.random.split(jax.random.key(100), KEYS)
    with jax.enable_x64(True):
        many = jax.jit(jax.vmap(lambda key: estimate(simulator, log_policy, log_anchor, TRAJECTORIES, key)))
        return jax.tree.map(np.asarray, many(keys))


def own(mdp):
    """The model as a user's function, with randomness of its own kind."""
    logits = jnp.log(jnp.asarray(mdp.transitions))

    def sample(states, actions, key):
        following = jax.random.categorical(key, logits[states, actions], axis=-1)
        return following, jnp.moveaxis(jnp.asarray(mdp.rewards), 0, -1)[states, actions]

    return Simulator(
        sample,
        states=mdp.states,
        actions=mdp.actions,
        names=mdp.names,
        discount=mdp.discount,
        initial=mdp.initial,
    )


@pytest.mark.parametrize("kind", [TableSimulator, own])
def test_estimates_are_unbiased_regularised_terms_included(small_mdp, kind):
    log_policy, log_anchor = policies(small_mdp)
    sums, _ = estimates(kind(small_mdp), log_policy, log_anchor)
    error = sums.std(axis=0, ddof=1) / np.sqrt(KEYS)
    distance = np.abs(sums.mean(axis=0) - exact(small_mdp, log_policy, log_anchor))
    assert (error > 0).all()
    assert (distance <= 4 * error).all(), (distance / error).max()


def test_horizons_are_geometric(small_mdp):
    """A trajectory takes ``1 / (1 - gamma)`` steps on average, with variance ``gamma / (1 - gamma)^2``."""
    log_policy, log_anchor = policies(small_mdp)
    _, steps = estimates(TableSimulator(small_mdp), log_policy, log_anchor)
    count, gamma = KEYS * TRAJECTORIES * log_policy.size, small_mdp.discount
    mean = steps.sum() / count
    assert abs(mean - 1 / (1 - gamma)) <= 4 * np.sqrt(gamma / count) / (1 - gamma)


def test_trajectories_are_independent(small_mdp):
    """The variance of a mean of 50 is that of a single one over 50, within 25 % (200 keys, 45 entries)."""
    log_policy, log_anchor = policies(small_mdp)
    simulator, keys = TableSimulator(small_mdp), jax.random.split(jax.random.key(6), 4000)
    with jax.enable_x64(True):
        single = jax.jit(jax.vmap(lambda key: estimate(simulator, log_policy, log_anchor, 1, key)[0]))(keys)
    mean, _ = estimates(simulator, log_policy, log_anchor)
    ratio = mean.var(axis=0).mean() * TRAJECTORIES / np.asarray(single).var(axis=0).mean()
    assert abs(ratio - 1) < 0.25


@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_from_samples(paper_mdp, name):
    """True values after 60 steps are better than the uniform policy's; several seeds in one call."""
    words = {
        "arnpg-imd": ProportionalFair(offset=1e-3),
        "arnpg-omda": MaxMin(),
        "mo-npg": MaxMin(),
    }.get(name, Constrained("first", at_least={"second": 3.0}))
    criterion = words.bind(paper_mdp.names)
    algorithm = METHODS[name](TableSimulator(paper_mdp), criterion)
    found = run_batch([algorithm] * 3, 60, keys=jax.random.split(jax.random.key(2), 3))
    assert len({values.tobytes() for values in found.trace.values}) == 3
    for log_policy in found.last.log_policy:
        reached, before = (criterion.value(true(paper_mdp, table)) for table in (np.exp(log_policy), None))
        assert reached > before + 0.05


def true(mdp, policy):
    """The exact values of a policy, by default the uniform one."""
    policy = np.full((mdp.states, mdp.actions), 1 / mdp.actions) if policy is None else policy
    chain = np.einsum("sa,sat->st", policy, mdp.transitions)
    rewards = np.einsum("sa,msa->sm", policy, mdp.rewards)
    return mdp.initial @ np.linalg.solve(np.eye(mdp.states) - mdp.discount * chain, rewards)


def test_a_users_simulator_runs_under_every_method(small_mdp):
    criterion = MaxMin().bind(small_mdp.names)
    found = run(METHODS["arnpg-omda"](own(small_mdp), criterion, step_size=0.3), 5)
    assert np.isfinite(found.trace.values).all()


@pytest.mark.parametrize("count", [1, 2, 20])
def test_alias_tables_hold_the_distribution(count):
    """To the resolution of the float32 that they are kept in."""
    generator = np.random.default_rng(count)
    rows = np.concatenate([generator.dirichlet(np.full(count, c), 30) for c in (0.05, 1.0)] + [np.eye(count)])
    keep, alias = alias_tables(rows)
    implied = keep.astype(float)
    for row in range(len(rows)):
        np.add.at(implied[row], alias[row], 1 - keep[row].astype(float))
    np.testing.assert_allclose(implied / count, rows, atol=1e-7)


def test_bad_simulators_are_refused(small_mdp):
    def wrong(states, actions, key):
        return states, jnp.zeros((len(states), 2))

    with pytest.raises(ModelError, match=r"sample must return next states \(n,\) and rewards \(n, 3\)"):
        Simulator(wrong, states=5, actions=3, names=("a", "b", "c"), discount=0.9)
    with pytest.raises(ModelError, match="states must be a whole number >= 1, got 0"):
        Simulator(wrong, states=0, actions=3, names=("a", "b"), discount=0.9)
    with pytest.raises(ModelError, match="sample failed on two lanes"):
        Simulator(lambda states: states, states=5, actions=3, names=("a", "b"), discount=0.9)
    with pytest.raises(SettingsError, match="trajectories must be a whole number >= 1, got 0"):
        SampledInnerLoop(TableSimulator(small_mdp), 1.0, 0.2, 0)
