"""Proximal updates: the loss's gradient where it starts, whole passes against a plain loop, when they stop."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from arnpg.envs import BoxActions, DiscreteActions
from arnpg.errors import SettingsError
from arnpg.neural.minibatches import minibatches
from arnpg.neural.networks import Network, make_policy
from arnpg.neural.proximal import ClippedLoss, Passes, ProximalLoss
from arnpg.neural.update import Samples

KEY = jax.random.key(2)
COUNT = 60
KINDS = {"gaussian": BoxActions(2, -1.0, 1.0), "softmax": DiscreteActions(3)}


def drawn(actions, seed=0):
    """A policy and samples that it could have collected."""
    key = jax.random.key(seed)
    policy = make_policy(key, Network((8,), jnp.tanh), 3, actions)
    observations = jax.random.normal(key, (COUNT, 3))
    taken = policy(observations).sample(policy.noise(key, (COUNT,)))
    return policy, Samples(observations, taken, jax.random.normal(jax.random.key(seed + 1), (COUNT,)), jnp.zeros(1))


@pytest.fixture(scope="module", params=KINDS)
def case(request):
    return drawn(KINDS[request.param])


def mean_loss(loss, policy, anchor, samples):
    """The loss of the whole batch as a function of the parameters."""
    flat, unravel = ravel_pytree(policy)
    old, centre = policy(samples.observations), anchor(samples.observations)
    rest = (old, centre, samples.actions, samples.advantages)
    return lambda theta: loss(unravel(theta)(samples.observations), *rest).mean(), flat


@pytest.mark.parametrize("loss", [ProximalLoss(temperature=1.5), ClippedLoss()], ids=["proximal", "clipped"])
def test_at_the_old_policy_the_gradient_is_the_policy_gradient(case, loss):
    """Ratio 1, KL 0 with gradient 0: what is left is `-E[A grad log pi]`, by the temperature."""
    policy, samples = case
    value, flat = mean_loss(loss, policy, policy, samples)
    unravel = ravel_pytree(policy)[1]
    likelihood = lambda t: (unravel(t)(samples.observations).log_prob(samples.actions) * samples.advantages).mean()  # noqa: E731
    scale = 1.5 if isinstance(loss, ProximalLoss) else 1.0
    np.testing.assert_allclose(jax.grad(value)(flat), -jax.grad(likelihood)(flat) / scale, atol=1e-6)  # float32


def test_the_anchor_draws_the_policy_to_itself(case):
    """Without advantages the loss is `alpha KL(pi || anchor)`, and its passes bring the policy nearer."""
    policy, samples = case
    kind = "gaussian" if hasattr(policy, "log_sd") else "softmax"
    anchor = make_policy(jax.random.key(9), Network((8,), jnp.tanh), 3, KINDS[kind])
    still = Samples(samples.observations, samples.actions, jnp.zeros(COUNT), samples.values)
    update = Passes(ProximalLoss(1.0), learning_rate=1e-3, epochs=5, minibatch=20, stop_kl=10.0)
    new, _, _ = eqx.filter_jit(update)(policy, anchor, update.start(policy), still, 0.99, KEY)
    before, after = (p(samples.observations).kl(anchor(samples.observations)).mean() for p in (policy, new))
    assert after < 0.9 * before


def test_passes_are_adam_on_the_same_minibatches(case):
    """Three epochs written out with optax's own Adam and clipping."""
    policy, samples = case
    update = Passes(ProximalLoss(0.05), learning_rate=3e-3, epochs=3, minibatch=25, stop_kl=10.0, gradient_clip=0.1)
    new, state, info = eqx.filter_jit(update)(policy, policy, update.start(policy), samples, 0.99, KEY)
    theta, unravel = ravel_pytree(policy)
    old = policy(samples.observations)
    optimiser = optax.chain(optax.clip_by_global_norm(0.1), optax.adam(3e-3))
    moments = optimiser.init(theta)
    for epoch in range(3):
        for rows in minibatches(jax.random.fold_in(KEY, epoch), COUNT, 25):
            part = jax.tree.map(lambda leaf, rows=rows: leaf[rows], (samples.observations, samples.actions, old))
            some, taken, before = part
            loss = lambda t: update.loss(unravel(t)(some), before, before, taken, samples.advantages[rows]).mean()  # noqa: B023, E731
            change, moments = optimiser.update(jax.grad(loss)(theta), moments)
            theta = optax.apply_updates(theta, change)
    np.testing.assert_allclose(ravel_pytree(new)[0], theta, atol=1e-5)  # the same sums in another order, in float32
    assert state.updates == 1
    assert info.fraction == 1
    np.testing.assert_allclose(info.kl, new(samples.observations).kl(old).mean(), rtol=1e-4)


def test_epochs_stop_where_the_kl_is_too_large(case):
    policy, samples = case
    update = Passes(ProximalLoss(max_kl=10.0), learning_rate=0.1, epochs=8, minibatch=20, stop_kl=1e-3)
    _, _, info = eqx.filter_jit(update)(policy, policy, update.start(policy), samples, 0.99, KEY)
    assert info.fraction == 1 / 8
    assert info.kl > 1e-3


def test_the_rate_falls_to_nothing(case):
    policy, samples = case
    update = Passes(learning_rate=1e-3, epochs=1, updates=2)
    step, state = eqx.filter_jit(update), update.start(policy)
    moved = []
    for _ in range(3):
        new, state, _ = step(policy, policy, state, samples, 0.99, KEY)
        moved.append(float(jnp.abs(ravel_pytree(new)[0] - ravel_pytree(policy)[0]).max()))
    assert moved[0] > 1.5 * moved[1] > 0
    assert moved[2] == 0


def test_a_ratio_beyond_the_clip_gains_nothing_more():
    policy, samples = drawn(KINDS["softmax"])
    further = eqx.tree_at(lambda p: p.network.biases[-1], policy, policy.network.biases[-1] + jnp.array([3.0, 0, 0]))
    good = Samples(samples.observations, jnp.zeros(COUNT, jnp.int32), jnp.ones(COUNT), samples.values)
    old = policy(samples.observations)

    def loss(bias):
        new = eqx.tree_at(lambda p: p.network.biases[-1], further, bias)(good.observations)
        return ClippedLoss()(new, old, old, good.actions, good.advantages).mean()

    slope = jax.grad(loss)(further.network.biases[-1])
    assert not slope.any()


def test_bad_settings_are_refused():
    with pytest.raises(SettingsError, match="epochs must be at least 1, got 0"):
        Passes(epochs=0)
    with pytest.raises(SettingsError, match="temperature must be positive, got -1"):
        ProximalLoss(temperature=-1.0)
    with pytest.raises(SettingsError, match=r"clip must lie in \(0, 1\), got 2"):
        ClippedLoss(clip=2.0)
