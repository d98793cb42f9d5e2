"""Every environment against Gymnasium's, one step at a time in float64 from the same states: 1e-10."""

import functools

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arnpg.envs import Acrobot, CartPole, Pendulum
from arnpg.envs.acrobot import TWO_REWARDS, AcrobotState
from arnpg.envs.cartpole import CartPoleState
from arnpg.envs.env import EnvState, Transition
from arnpg.envs.pendulum import PendulumState

STEPS = 25
TOLERANCE = 1e-10  # the same arithmetic in another order: a few hundred units in the last place of numbers near 10


def peer_path(peer, start, actions):
    """States, observations, rewards and ends of one of Gymnasium's trajectories, from a given state."""
    peer.reset(seed=0)
    peer.state = np.array(start, np.float64)
    if hasattr(peer, "steps_beyond_terminated"):
        peer.steps_beyond_terminated = None
    states, rewards, ends = [peer.state], [], []
    for action in actions:
        _, reward, terminated, truncated, _ = peer.step(action)
        assert not truncated
        states.append(np.array(peer.state, np.float64))
        rewards.append(reward)
        ends.append(terminated)
        if terminated:
            break
    return np.array(states), np.array(rewards), np.array(ends)


@functools.partial(jax.jit, static_argnums=0)
def our_steps(env, states, actions):
    """`advance` of every state of a batch by itself."""
    keys = jax.random.split(jax.random.key(0), len(actions))
    after, ended = jax.vmap(env.advance)(states, actions, keys)
    return jnp.stack(after, -1), jnp.stack(jax.vmap(env.observe)(after)), ended


def compare(env, state_type, peer, starts, draw):
    befores, afters, ends, taken = [], [], [], []
    for start in starts:
        actions = [draw() for _ in range(STEPS)]
        states, _, ended = peer_path(peer, start, actions)
        befores.append(states[:-1])
        afters.append(states[1:])
        ends.append(ended)
        taken.extend(actions[: len(ended)])
    befores, afters, ends = (np.concatenate(x) for x in (befores, afters, ends))
    with jax.enable_x64(True):
        ours, _, our_ends = our_steps(env, state_type(*jnp.asarray(befores.T)), jnp.asarray(np.array(taken)))
        assert ours.dtype == jnp.float64
        np.testing.assert_allclose(np.asarray(ours), afters, rtol=0, atol=TOLERANCE)
        np.testing.assert_array_equal(np.asarray(our_ends), ends)
    return ends


def acrobot_starts(rng, kind):
    if kind == "random":
        return rng.uniform(-0.1, 0.1, (1000, 4))
    return rng.uniform([-np.pi, -np.pi, -4 * np.pi, -9 * np.pi], [np.pi, np.pi, 4 * np.pi, 9 * np.pi], (100, 4))


@pytest.mark.parametrize("kind", ["random", "energetic"])
def test_acrobot(kind):
    rng = np.random.default_rng(1)
    peer = gymnasium.make("Acrobot-v1").unwrapped
    ends = compare(Acrobot(), AcrobotState, peer, acrobot_starts(rng, kind), lambda: int(rng.integers(3)))
    assert ends.any() == (kind == "energetic")


def test_cartpole():
    rng = np.random.default_rng(2)
    peer = gymnasium.make("CartPole-v1").unwrapped
    starts = np.concatenate([rng.uniform(-0.05, 0.05, (900, 4)), rng.uniform(-2, 2, (100, 4)) * [1, 1, 0.1, 1]])
    assert compare(CartPole(), CartPoleState, peer, starts, lambda: int(rng.integers(2))).any()


def test_pendulum():
    rng = np.random.default_rng(3)
    peer = gymnasium.make("Pendulum-v1").unwrapped
    starts = rng.uniform([-np.pi, -8], [np.pi, 8], (300, 2))
    compare(Pendulum(), PendulumState, peer, starts, lambda: rng.uniform(-3, 3, 1))


def test_pendulum_reward_is_gymnasiums():
    rng = np.random.default_rng(4)
    peer, env = gymnasium.make("Pendulum-v1").unwrapped, Pendulum()
    with jax.enable_x64(True):
        for start in rng.uniform([-10, -8], [10, 8], (30, 2)):
            action = rng.uniform(-3, 3, 1)
            _, rewards, _ = peer_path(peer, start, [action])
            physics = PendulumState(*jnp.asarray(start))
            state = EnvState(physics, env.observe(physics), jnp.zeros((), jnp.int32))
            ours = env.step(state, jnp.asarray(action), jax.random.key(0)).rewards
            np.testing.assert_allclose(ours, [rewards[0], np.clip(action[0], -2, 2) ** 2], atol=TOLERANCE)


@pytest.mark.parametrize("env", [Acrobot(), CartPole(), Pendulum()], ids=lambda e: type(e).__name__)
def test_observations_and_starts_fit_the_peers_spaces(env):
    peer = gymnasium.make(f"{type(env).__name__}-v1")
    states = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), 200))
    assert states.observation.dtype == jnp.float32
    assert states.observation.shape == (200, env.observation_size) == (200, *peer.observation_space.shape)
    assert all(peer.observation_space.contains(o) for o in np.asarray(states.observation))
    assert env.time_limit == peer.spec.max_episode_steps


def acrobot_rewards(env, theta1, theta2, speed1, speed2, action):
    physics = AcrobotState(*(jnp.float32(x) for x in (theta1, theta2, speed1, speed2)))
    state = EnvState(physics, env.observe(physics), jnp.zeros((), jnp.int32))
    return np.asarray(env.step(state, jnp.int32(action), jax.random.key(0)).rewards)


@pytest.mark.parametrize(
    ("state", "action", "rewards"),
    [
        ((0.0, 0.0, -1.0, -1.0), 0, (0, 0, 0)),
        ((0.0, 0.0, -1.0, 1.0), 1, (0, 1, 0)),
        ((0.0, 0.0, 1.0, -1.0), 2, (0, 0, 1)),
        ((0.0, 2.2, 0.0, 0.0), 2, (1, 0, 0) if -np.cos(2.2) - 1 > -0.5 else (0, 0, 0)),
        ((np.pi / 2, np.pi / 2, -0.1, -0.1), 2, (1, 1, 1)),
    ],
)
def test_constrained_objectives_read_the_state_before_the_step(state, action, rewards):
    np.testing.assert_array_equal(acrobot_rewards(Acrobot(), *state, action), rewards)


@pytest.mark.parametrize(("tip", "rewards"), [(-0.1, (0, 0)), (0.05, (0, 1)), (0.3, (0, 0)), (0.6, (1, 0))])
def test_two_rewards_split_the_tips_height(tip, rewards):
    straight = np.arccos(-tip / 2)
    np.testing.assert_array_equal(acrobot_rewards(Acrobot(TWO_REWARDS), straight, 0, 0, 0, 1), rewards)


def test_own_objectives_and_the_time_limit():
    def spin(t: Transition) -> jax.Array:
        return jnp.abs(t.next_state.speed1)

    env = Acrobot({"spin": spin}, time_limit=2)
    assert env.names == ("spin",)
    key = jax.random.key(0)
    first = env.step(env.reset(key), jnp.int32(0), key)
    second = env.step(first.state, jnp.int32(0), key)
    assert not first.truncated
    assert second.truncated
    assert not second.terminated
    np.testing.assert_allclose(first.rewards, [abs(first.state.physics.speed1)])


def test_objectives_are_refused_with_a_cure():
    with pytest.raises(ValueError, match="objectives must not be empty; give at least one name"):
        Acrobot({})
    with pytest.raises(TypeError, match=r"objectives\['height'\] must be a function of the transition, got 3"):
        Acrobot({"height": 3})
