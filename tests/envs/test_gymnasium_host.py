"""Gymnasium environments as one batch, against the same environments stepped by hand, one after the other."""

import functools
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from host_environments import Misbehaving, SixTuple, Spaces, TwoRewards, UnnamedRewards, VectorMisbehaving, Walk

from arnpg.envs import BoxActions, DiscreteActions, make_host
from arnpg.envs.host import environment_seeds
from arnpg.errors import EnvironmentFault, NumericalError, ObjectiveError, SettingsError

COUNT, SEED = 3, 7


def by_hand(make, actions, seed, time_limit):
    """One environment alone, reset where it is over: what each step showed, and what came next."""
    env, seen = make(), []
    observation, elapsed = env.reset(seed=seed)[0], 0
    rows = [observation]
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        elapsed += 1
        truncated = (truncated or elapsed >= time_limit) and not terminated
        following = observation
        if terminated or truncated:
            following, elapsed = env.reset()[0], 0
        seen.append((reward, observation, terminated, truncated, info, following))
    return rows[0], seen


@pytest.mark.parametrize("time_limit", [4, 8, 100])
def test_a_batch_is_its_environments_stepped_by_hand(time_limit):
    make = functools.partial(Walk, noise=0.3)
    actions = np.random.default_rng(0).uniform(-0.5, 1.0, (60, COUNT, 1))
    host = make_host(make, time_limit=time_limit)
    with host.open(COUNT, SEED) as batch:
        first = batch.reset()
        steps = [batch.step(a) for a in actions]
    ends = 0
    for index, seed in enumerate(environment_seeds(SEED, COUNT)):
        start, seen = by_hand(make, actions[:, index], seed, time_limit)
        np.testing.assert_array_equal(first[index], start.astype(np.float32))
        for step, (reward, after, terminated, truncated, info, following) in zip(steps, seen, strict=True):
            np.testing.assert_array_equal(step.rewards[index], np.float32([reward, info["cost"]]))
            np.testing.assert_array_equal(step.next_observations[index], after.astype(np.float32))
            np.testing.assert_array_equal(step.observations[index], following.astype(np.float32))
            assert (step.terminated[index], step.truncated[index]) == (terminated, truncated)
            ends += terminated or truncated
    assert ends > COUNT
    assert host.names == ("return", "cost")
    assert first.dtype == steps[0].rewards.dtype == steps[0].observations.dtype == np.float32


def test_termination_wins_at_the_time_limit_and_the_final_observation_is_kept():
    host = make_host(functools.partial(Walk, length=3.0, start=0.0, patience=3), time_limit=3)
    with host.open(2, 0) as batch:
        batch.reset()
        steps = [batch.step(np.array([[1.0], [0.1]])) for _ in range(3)]
    last = steps[-1]
    assert last.terminated.tolist() == [True, False]
    assert last.truncated.tolist() == [False, True]
    np.testing.assert_allclose(last.next_observations, [[3.0, 3.0], [0.3, 3.0]], rtol=1e-6)
    np.testing.assert_array_equal(last.observations, np.zeros((2, 2)))
    assert not any(step.terminated.any() or step.truncated.any() for step in steps[:-1])


def test_seeds_say_everything():
    host = make_host(functools.partial(Walk, noise=1.0), time_limit=5)
    actions = np.zeros((12, 4, 1))

    def path(batch, count):
        return np.array([batch.step(a[:count]).observations for a in actions])

    with host.open(4, 3) as batch, host.open(4, 3) as again, host.open(2, 3) as fewer, host.open(4, 4) as other:
        starts = [b.reset() for b in (batch, again, fewer, other)]
        paths = [path(b, b.count) for b in (batch, again, fewer, other)]
        np.testing.assert_array_equal(starts[0], starts[1])
        np.testing.assert_array_equal(paths[0], paths[1])
        np.testing.assert_array_equal(paths[0][:, :2], paths[2])  # an environment does not know how many there are
        assert not np.allclose(starts[0], starts[3])
        assert len(np.unique(paths[0][..., 0])) > 40  # environments differ from each other, episodes too
        fresh = batch.reset()
        assert not np.allclose(fresh, starts[0])
        np.testing.assert_array_equal(batch.reset(seed=3), starts[0])
        np.testing.assert_array_equal(path(batch, 4), paths[0])
        np.testing.assert_array_equal(again.reset(), fresh)


def test_objectives_from_everywhere():
    host = make_host(
        Walk,
        {
            "return": "reward",
            "cost": "info:cost",
            "also": "cost",
            "place": lambda t: t.info["place"][:, 0],
            "gain": lambda t: t.next_observation[:, 0] - t.observation[:, 0],
            "push": lambda t: t.action[:, 0],
            "over": lambda t: t.terminated,
            "one": lambda t: np.ones_like(t.reward),
        },
        time_limit=50,
    )
    with host.open(2, 0) as batch:
        before = batch.reset()
        step = batch.step(np.array([[0.5], [-3.0]]))  # beyond the box: clipped
    position = step.next_observations[:, 0]
    expected = [
        position, [0.5, 1.0], [0.5, 1.0], position, position - before[:, 0], [0.5, -1.0], [0, 0], [1, 1],
    ]  # fmt: skip
    np.testing.assert_allclose(step.rewards.T, expected, atol=1e-6)
    assert host.names == ("return", "cost", "also", "place", "gain", "push", "over", "one")


@pytest.mark.parametrize(
    ("make", "names", "rewards"),
    [
        (TwoRewards, ("position", "effort"), (1.5, -0.5)),
        (UnnamedRewards, ("reward_1", "reward_2"), (1.5, -0.5)),
        (SixTuple, ("return", "cost"), (1.5, 1.0)),
    ],
)
def test_vectors_and_costs_are_found_by_themselves(make, names, rewards):
    host = make_host(functools.partial(make, start=0.0), time_limit=9)
    assert host.names == names
    with host.open(1, 0) as batch:
        batch.reset()
        batch.step(np.ones((1, 1)))
        np.testing.assert_allclose(batch.step(np.full((1, 1), 0.5)).rewards, [rewards])


def test_entries_of_a_vector_by_number():
    host = make_host(TwoRewards, {"thrift": "reward[1]"}, time_limit=9)
    with host.open(2, 0) as batch:
        batch.reset()
        np.testing.assert_allclose(batch.step(np.array([[0.25], [1.0]])).rewards, [[-0.25], [-1.0]])
    with pytest.raises(ObjectiveError, match="'reward', but the reward is a vector of 2; write 'reward\\[0\\]'"):
        make_host(TwoRewards, {"thrift": "reward"}, time_limit=9)
    with pytest.raises(ObjectiveError, match="'reward\\[2\\]', but the reward is a vector of 2"):
        make_host(TwoRewards, {"thrift": "reward[2]"}, time_limit=9)
    with pytest.raises(ObjectiveError, match="'reward\\[0\\]', but the reward is a single number"):
        make_host(Walk, {"thrift": "reward[0]"}, time_limit=9)


BOX = spaces.Box(-1.0, 1.0, (2,))


@pytest.mark.parametrize(
    ("space", "size"),
    [
        (spaces.Discrete(5, start=2), 5),
        (spaces.MultiBinary(3), 3),
        (spaces.MultiDiscrete([2, 3]), 5),
        (spaces.Box(0, 255, (2, 2, 3), np.uint8), 12),
        (spaces.Tuple((spaces.Discrete(2), BOX)), 4),
        (spaces.Dict({"b": BOX, "a": spaces.Dict({"c": spaces.Discrete(3)})}), 5),
    ],
    ids=lambda x: type(x).__name__,
)
def test_observations_are_flat_as_gymnasium_flattens_them(space, size):
    made = []

    def make():
        made.append(Spaces(space, spaces.Discrete(2)))
        return made[-1]

    host = make_host(make, time_limit=9)
    assert host.observation_size == size
    with host.open(2, 0) as batch:
        batch.reset()
        seen = batch.step(np.array([0, 1])).next_observations
    expected = [spaces.flatten(space, env.last) for env in made[-2:]]
    np.testing.assert_array_equal(seen, np.array(expected, np.float32))


@pytest.mark.parametrize(
    ("space", "given", "received"),
    [
        (spaces.Discrete(3, start=-1), [0, 2], [-1, 1]),
        (spaces.MultiDiscrete([2, 3]), [1, 5], [[0, 1], [1, 2]]),
        (spaces.MultiDiscrete([[2, 2], [2, 1]]), [1, 6], [[[0, 0], [1, 0]], [[1, 1], [0, 0]]]),
        (spaces.Box(np.array([-1, 0]), np.array([1, 2]), dtype=np.float32), [[5, 1], [0, -9]], [[1, 1], [0, 0]]),
        (spaces.Box(-2.0, 2.0, (2, 1)), [[1, 2], [3, 4]], [[[1], [2]], [[2], [2]]]),
    ],
    ids=["Discrete", "MultiDiscrete", "MultiDiscrete 2x2", "Box", "Box 2x1"],
)
def test_actions_reach_the_environment_in_its_own_terms(space, given, received):
    made = []

    def make():
        made.append(Spaces(BOX, space))
        return made[-1]

    host = make_host(make, time_limit=9)
    discrete = isinstance(space, spaces.Discrete | spaces.MultiDiscrete)
    assert isinstance(host.actions, DiscreteActions if discrete else BoxActions)
    with host.open(2, 0) as batch:
        batch.reset()
        batch.step(np.array(given))
    for env, expected in zip(made[-2:], received, strict=True):
        np.testing.assert_array_equal(env.given[-1], expected)
    if isinstance(space, spaces.Discrete):
        assert type(made[-1].given[-1]) is int


def test_spaces_that_are_refused():
    with pytest.raises(SettingsError, match="supported are Discrete, MultiDiscrete .* and Box of floats"):
        make_host(lambda: Spaces(BOX, spaces.MultiBinary(3)), time_limit=9)
    with pytest.raises(SettingsError, match="supported are Discrete"):
        make_host(lambda: Spaces(BOX, spaces.Dict({"a": BOX})), time_limit=9)
    with pytest.raises(SettingsError, match="6561 combinations, more than 4096"):
        make_host(lambda: Spaces(BOX, spaces.MultiDiscrete([3] * 8)), time_limit=9)
    with pytest.raises(SettingsError, match="cannot be flattened; supported are Box, Discrete"):
        make_host(lambda: Spaces(spaces.Text(4), spaces.Discrete(2)), time_limit=9)


def test_the_time_limit_is_the_environments_own_or_ours():
    assert make_host("CartPole-v1", backend="gymnasium").time_limit == 500
    assert make_host("CartPole-v1", backend="gymnasium", time_limit=7).time_limit == 7
    assert make_host(gymnasium.make("CartPole-v1"), backend="gymnasium").time_limit == 500
    assert make_host(lambda: gymnasium.wrappers.TimeLimit(Walk(), 6)).time_limit == 6
    with pytest.raises(SettingsError, match="has no time limit, and its episodes may never end; pass time_limit"):
        make_host(Walk)
    with make_host("CartPole-v1", backend="gymnasium", time_limit=3).open(1, 0) as batch:
        batch.reset()
        ends = [batch.step(np.array([i % 2])).truncated[0] for i in range(6)]
    assert ends == [False, False, True] * 2


def test_ids_classes_functions_and_options():
    by_name = make_host(f"{Walk.__module__}:Walk", time_limit=9, options={"patience": 2})
    assert by_name.label == "Walk"
    with by_name.open(1, 0) as batch:
        batch.reset()
        assert [batch.step(np.zeros((1, 1))).truncated[0] for _ in range(4)] == [False, True] * 2
    assert make_host("CartPole-v1") == make_host("CartPole-v1")
    assert hash(make_host("CartPole-v1")) == hash(make_host("CartPole-v1"))
    assert make_host("CartPole-v1") != make_host("CartPole-v1", time_limit=9)
    with pytest.raises(SettingsError, match="'CartPol-v1' is not the id of an environment; perhaps you meant Cart"):
        make_host("CartPol-v1")
    with pytest.raises(SettingsError, match="nowhere:Env cannot be imported"):
        make_host("nowhere:Env")
    with pytest.raises(SettingsError, match="module host_environments has no 'Wolk', .* perhaps you meant Walk"):
        make_host("host_environments:Wolk")
    with pytest.raises(SettingsError, match="env is one Walk, and several are needed; give its class"):
        make_host(Walk())
    with pytest.raises(SettingsError, match="does not take the options"):
        make_host("CartPole-v1", backend="gymnasium", options={"gravitas": 3})
    shared = Walk()
    with pytest.raises(SettingsError, match="gave the same environment twice"):
        make_host(lambda: shared, time_limit=9).open(2, 0)
    with pytest.raises(SettingsError, match="made a SyncVectorEnv|made a vector environment"):
        make_host(lambda: gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync"), time_limit=9)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("nan observation", "observation\\[1\\] is nan"),
        ("nan reward", "the reward is nan"),
        ("late vector", "the reward is a vector of 2, and should be a number"),
        ("short", "step must return \\(observation, reward, terminated, truncated, info\\).*got 4 values"),
        ("shape", "the observation has shape \\(3,\\), observation_space says \\(2,\\)"),
        ("dtype", "the observation has dtype complex128, observation_space says float64"),
        ("raises", "step raised RuntimeError: the simulator fell over"),
        ("done is text", "terminated must be True or False, got 'no'"),
        ("cost is nan", "objective 'cost' is inf"),
    ],
)
def test_a_broken_word_is_a_fault_with_its_place(fault, words):
    made = []

    def make():
        made.append(Misbehaving(fault, at=3) if len(made) % 3 == 2 else Walk())  # the first is for looking at
        return made[-1]

    batch = make_host(make, time_limit=20).open(2, SEED)
    batch.reset()
    actions = np.array([[0.1], [0.2]])
    batch.step(actions)
    batch.step(actions)
    with pytest.raises(EnvironmentFault, match=words) as caught:
        batch.step(actions)
    error = caught.value
    assert (error.environment, error.step, error.seed) == (1, 3, environment_seeds(SEED, 2)[1])
    assert f"environment 1, seed {error.seed}, step 3" in str(error)
    np.testing.assert_allclose(error.action, [0.2])
    np.testing.assert_allclose(error.details["episode_actions"], np.full((3, 1), 0.2))
    if fault == "raises":
        assert "the simulator fell over" in str(error.details["traceback"])
    assert all(env.closed for env in made)
    with pytest.raises(SettingsError, match="the environments of .* are closed"):
        batch.step(actions)


def test_a_fault_in_the_last_step_of_an_episode_is_that_episodes():
    host = make_host(Walk, {"late": lambda t: np.where(t.truncated, np.nan, 0)}, time_limit=3)
    with host.open(1, SEED) as batch:
        batch.reset()
        batch.step(np.full((1, 1), 0.25))
        batch.step(np.full((1, 1), 0.5))
        with pytest.raises(EnvironmentFault, match="step 3 \\(episode 0\\): objective 'late' is nan") as caught:
            batch.step(np.full((1, 1), 0.75))
    np.testing.assert_array_equal(caught.value.details["episode_actions"], [[0.25], [0.5], [0.75]])


def test_what_goes_wrong_at_once_is_told_before_any_training():
    for fault, words in (
        ("over at reset", "reset began an episode that is already over"),
        ("no info", "reset must return \\(observation, info\\), got ndarray"),
        ("reset raises", "reset raised OSError: the port is in use"),
    ):
        with pytest.raises(EnvironmentFault, match=words):
            make_host(functools.partial(Misbehaving, fault), time_limit=9)
    with pytest.raises(ObjectiveError, match="asks for info\\['sped'\\], which this step does not have; it has cost"):
        make_host(Walk, {"speed": "info:sped"}, time_limit=9)
    with pytest.raises(ObjectiveError, match="must give one number for each environment, shape \\(2,\\), got shape"):
        make_host(Walk, {"speed": lambda t: t.observation}, time_limit=9)
    with pytest.raises(ObjectiveError, match="failed on a batch of 2 .* write np.where"):
        make_host(Walk, {"speed": lambda t: 1.0 if t.reward > 0 else 0.0}, time_limit=9)
    with pytest.raises(ObjectiveError, match="objectives must map names to"):
        make_host(Walk, {}, time_limit=9)
    with pytest.raises(ObjectiveError, match="must be 'reward', 'reward\\[1\\]', 'info:key' or a function, got 3"):
        make_host(Walk, {"speed": 3}, time_limit=9)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("long", "the reward is a vector of 3, and should be a vector of 2"),
        ("number", "the reward is a number, and should be a vector of 2"),
        ("nan", "the reward is \\[.*nan\\]"),
    ],
)
def test_a_reward_vector_keeps_its_length(fault, words):
    with make_host(lambda: VectorMisbehaving(fault), time_limit=9).open(1, 0) as batch:
        batch.reset()
        batch.step(np.zeros((1, 1)))
        batch.step(np.zeros((1, 1)))
        with pytest.raises(EnvironmentFault, match=words):
            batch.step(np.zeros((1, 1)))


def test_a_key_that_goes_away():
    with make_host(lambda: Misbehaving("key goes away"), time_limit=9).open(1, 0) as batch:
        batch.reset()
        batch.step(np.zeros((1, 1)))
        batch.step(np.zeros((1, 1)))
        with pytest.raises(ObjectiveError, match="The key must be there at every step"):
            batch.step(np.zeros((1, 1)))


def test_actions_are_checked_before_the_environment_sees_them():
    with make_host(Walk, time_limit=9).open(2, 0) as batch:
        with pytest.raises(SettingsError, match="step was called before reset"):
            batch.step(np.zeros((2, 1)))
        batch.reset()
        with pytest.raises(NumericalError, match="actions\\[1\\] is \\[nan\\]: the policy's numbers have run away"):
            batch.step(np.array([[0.0], [np.nan]]))
        with pytest.raises(NumericalError, match="actions must have shape \\(environments, 1\\)"):
            batch.step(np.zeros(2))
        with pytest.raises(SettingsError, match="one for each of 2 environments, got 3"):
            batch.step(np.zeros((3, 1)))
    with make_host("CartPole-v1", backend="gymnasium").open(2, 0) as batch:
        batch.reset()
        with pytest.raises(NumericalError, match="actions\\[1\\] must be in 0 .. 1, got 2"):
            batch.step(np.array([0, 2]))
        with pytest.raises(NumericalError, match="actions must be whole numbers"):
            batch.step(np.array([0.0, 1.0]))


def test_closing_twice_and_using_what_is_closed():
    batch = make_host(Walk, time_limit=9).open(2, 0)
    batch.reset()
    batch.close()
    batch.close()
    with pytest.raises(SettingsError, match="the environments of Walk are closed; open new ones"):
        batch.reset()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"backend": "gym"}, "backend must be one of auto, gymnasium, envpool, got 'gym'"),
        ({"time_limit": 0}, "time_limit must be a whole number >= 1, got 0"),
        ({"workers": 1.5}, "workers must be a whole number >= 0, got 1.5"),
        ({"step_timeout": 0.0}, "step_timeout must be positive seconds, got 0.0"),
    ],
)
def test_settings_are_checked(setting, words):
    with pytest.raises(SettingsError, match=words):
        make_host("CartPole-v1", **setting)
    with pytest.raises(SettingsError, match="count must be a whole number >= 1, got 0"):
        make_host("CartPole-v1").open(0, 0)
    with pytest.raises(SettingsError, match="seed must be a whole number >= 0, got -1"):
        make_host("CartPole-v1").open(1, -1)


def without(monkeypatch, package):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)


def test_what_is_missing_is_named_with_its_extra(monkeypatch):
    without(monkeypatch, "mujoco")
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.mujoco")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SettingsError, match="Hopper-v5 needs a package .*pip install 'arnpg\\[mujoco\\]'"):
        make_host("Hopper-v5", backend="gymnasium")
    without(monkeypatch, "Box2D")
    with pytest.raises(SettingsError, match="LunarLander-v3 needs a package that is not here: "):
        make_host("LunarLander-v3", backend="gymnasium")
    without(monkeypatch, "mo_gymnasium")
    known = {name: spec for name, spec in gymnasium.registry.items() if not name.startswith("mo-")}
    monkeypatch.setattr(gymnasium, "registry", known)
    with pytest.raises(SettingsError, match="may be one of mo_gymnasium's: pip install 'arnpg\\[mo\\]'"):
        make_host("mo-hopper-v5")


def test_mo_gymnasiums_vectors_bring_their_names():
    for name, names in (
        ("four-room-v0", ("blue", "green", "red")),
        ("resource-gathering-v0", ("survival", "gold", "diamond")),
        ("mo-hopper-v5", ("forward", "height", "control")),
        ("mo-mountaincar-v0", ("time", "reverse", "forward")),
    ):
        host = make_host(name, time_limit=50)
        assert host.names == names
        with host.open(2, 0) as batch:
            batch.reset()
            actions = np.zeros((2, 3)) if name == "mo-hopper-v5" else np.zeros(2, int)
            assert batch.step(actions).rewards.shape == (2, len(names))


def test_rewards_without_bounds_are_taken_as_they_are():
    with make_host(Walk, {"huge": lambda t: np.full_like(t.reward, 3e38)}, time_limit=9).open(4, 0) as batch:
        batch.reset()
        np.testing.assert_array_equal(batch.step(np.ones((4, 1))).rewards, np.float32(3e38))
