"""EnvPool's environments beside Gymnasium's of the same name: the same batch from the same starts, resets included.

The two draw their starts with different generators, so Gymnasium's environments begin here where EnvPool's began.
"""

import functools
import sys

import gymnasium
import numpy as np
import pytest

from arnpg.envs import make_host
from arnpg.envs.envpool_host import EnvPoolBatch, EnvPoolEnvironment, Pool
from arnpg.envs.envpool_source import PoolSource
from arnpg.envs.gymnasium_host import GymnasiumEnvironment
from arnpg.errors import EnvironmentFault, NumericalError, ObjectiveError, SettingsError

COUNT = 3


@pytest.fixture(autouse=True)
def _logs_elsewhere(tmp_path, monkeypatch):
    """MuJoCo writes what it warns of to the working folder."""
    monkeypatch.chdir(tmp_path)


def angles(o):
    return np.array([np.arctan2(o[1], o[0]), np.arctan2(o[3], o[2]), o[4], o[5]])


CLASSIC = {
    "CartPole-v1": np.asarray,
    "MountainCar-v0": np.asarray,
    "MountainCarContinuous-v0": np.asarray,
    "Pendulum-v1": lambda o: np.array([np.arctan2(o[1], o[0]), o[2]]),
    "Acrobot-v1": angles,
}
PLANAR = ("Hopper-v4", "Hopper-v5", "Walker2d-v4", "Walker2d-v5", "InvertedPendulum-v4", "InvertedPendulum-v5")


class BeginsAt(gymnasium.Wrapper):
    """Begins its episodes with the given observations, one after the other."""

    def __init__(self, env, starts):
        super().__init__(env)
        self.starts = starts

    def reset(self, **keywords):
        seen, info = self.env.reset(**keywords)
        if not self.starts:  # the one that is only looked at, and after the last step
            return seen, info
        start, inner = np.asarray(self.starts.pop(0), np.float64), self.env.unwrapped
        if inner.spec.id in CLASSIC:
            inner.state = CLASSIC[inner.spec.id](start)
            return start.astype(np.float32), info
        missing = inner.model.nq + inner.model.nv - len(start)  # the position along the track, which is not observed
        state = np.concatenate([np.zeros(missing), start])
        inner.set_state(state[: inner.model.nq], state[inner.model.nq :])
        return start, info


def starts_of(first, steps, index):
    over = [step.terminated[index] or step.truncated[index] for step in steps]
    return [first[index], *(step.observations[index] for step, end in zip(steps, over, strict=True) if end)]


def run(host, actions):
    with host.open(COUNT, 5) as batch:
        return batch.reset(), [batch.step(a) for a in actions]


def draw(env, steps):
    space = env.action_space
    space.seed(1)
    return np.array([[space.sample() for _ in range(COUNT)] for _ in range(steps)])


def same_batch(name, steps, time_limit, tolerance, objectives):
    pool = make_host(name, objectives, backend="envpool", time_limit=time_limit)
    single = gymnasium.make(name, disable_env_checker=True, max_episode_steps=-1)
    actions = draw(single, steps)
    first, ours = run(pool, actions)
    starts = iter([[], *(starts_of(first, ours, index) for index in range(COUNT))])

    def make():
        return BeginsAt(gymnasium.make(name, disable_env_checker=True, max_episode_steps=-1), next(starts))

    peer = make_host(make, objectives, time_limit=time_limit)
    assert isinstance(pool, EnvPoolEnvironment)
    assert isinstance(peer, GymnasiumEnvironment)
    assert (pool.names, pool.actions, pool.observation_size) == (peer.names, peer.actions, peer.observation_size)
    _, theirs = run(peer, actions)
    for k, (our, their) in enumerate(zip(ours, theirs, strict=True)):
        assert our.dropped is their.dropped is None
        for field, a, b in zip(our._fields, our[:-1], their[:-1], strict=False):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=f"step {k}, {field}")
    return ours


@pytest.mark.filterwarnings("ignore:.*is out of date", "ignore:.*precision lowered")
@pytest.mark.parametrize("name", PLANAR)
def test_mujoco_is_gymnasiums(name):
    # Two versions of MuJoCo may run: they agree to 1e-12 a step, which 60 steps of contact make at most 1e-6.
    objectives = {"return": "reward", "where": lambda t: t.next_observation[:, 0]}
    if "Pendulum" not in name:
        objectives["speed"] = lambda t: abs(t.info["x_velocity"])
    steps = same_batch(name, 150, 40, 2e-5, objectives)
    assert any(step.terminated.any() for step in steps)
    assert any(step.truncated.any() for step in steps) or "Hopper" in name or "Inverted" in name


@pytest.mark.parametrize("name", CLASSIC)
def test_classic_control_is_gymnasiums(name):
    # The starts are float32, and EnvPool keeps its states in float64: 60 steps spread a last place to 1e-4 at most.
    steps = same_batch(name, 120, 30, 2e-4, None)
    assert any(step.truncated.any() for step in steps)
    assert name != "CartPole-v1" or any(step.terminated.any() for step in steps)


@pytest.mark.filterwarnings("ignore:.*is out of date", "ignore:.*settotalmass")
@pytest.mark.parametrize("name", ["HalfCheetah-v5", "Swimmer-v5", "Ant-v5"])
def test_bodies_that_are_chaotic_agree_step_by_step(name):
    """From each observed state anew; the median, since at a contact's edge one body touches and the other does not."""
    options = {"exclude_current_positions_from_observation": False}
    host = make_host(name, backend="envpool", options=options)
    peer = gymnasium.make(name, disable_env_checker=True, max_episode_steps=-1, **options)
    inner, far = peer.unwrapped, []
    peer.reset(seed=0)
    size = inner.model.nq + inner.model.nv
    with host.open(COUNT, 0) as batch:
        before = batch.reset()
        for action in draw(peer, 60):
            step = batch.step(action)
            inner.data.qacc_warmstart[:] = 0
            inner.set_state(*np.split(before[0, :size].astype(np.float64), [inner.model.nq]))
            seen, reward, *_ = peer.step(action[0])
            gaps = np.abs(np.append(seen[:size] - step.next_observations[0, :size], reward - step.rewards[0, 0]))
            far.append(gaps.max())
            before = step.observations
    assert np.median(far) < 1e-3  # states rounded to float32 before the step


@pytest.mark.filterwarnings("ignore:.*is out of date", "ignore:.*settotalmass")
@pytest.mark.parametrize("name", ["Hopper-v3", "Walker2d-v5", "HalfCheetah-v4", "Ant-v5", "Swimmer-v4"])
def test_a_body_without_paint_moves_alike(name):
    """To the last bit: what is left out of the files is only to be looked at."""
    import envpool

    host = make_host(name, backend="envpool")
    with host.open(2, 4) as batch:
        given = {"env_type": "gymnasium", "num_envs": 2, "env_seed": batch._pool.seeds, "max_episode_steps": 1001}
        painted = envpool.make(name, **given)
        np.testing.assert_array_equal(batch.reset(), painted.reset()[0].astype(np.float32))
        for action in np.random.default_rng(0).uniform(-1, 1, (40, 2, host.actions.size)):
            step, (seen, reward, ended, *_) = batch.step(action), painted.step(action)
            np.testing.assert_array_equal(step.next_observations, seen.astype(np.float32))
            np.testing.assert_array_equal(step.rewards[:, 0], reward.astype(np.float32))
            if ended.any():
                break


def test_episodes_are_those_that_the_pool_alone_would_play():
    """No step is lost at a reset, and the starts are those of EnvPool's own resets."""
    host = make_host("Hopper-v4")
    actions = np.random.default_rng(0).uniform(-1, 1, (120, 1, 3))
    with host.open(1, 9) as batch:
        pool = host.source(batch._pool.seeds, 1, 1001)
        np.testing.assert_array_equal(batch.reset(), pool.reset()[0].astype(np.float32))
        steps = [batch.step(a) for a in actions]
    ends = 0
    for step, action in zip(steps, actions, strict=True):
        seen, reward, ended, *_ = pool.step(action)
        np.testing.assert_array_equal(step.next_observations, seen.astype(np.float32))
        np.testing.assert_array_equal(step.rewards[:, 0], reward)
        if ended[0]:
            ends += 1
            seen = pool.step(action)[0]  # EnvPool's own way: one more step, which ignores its action
        np.testing.assert_array_equal(step.observations, seen.astype(np.float32))
    assert ends > 1


def test_termination_wins_in_the_last_step():
    """EnvPool itself would call it truncated."""
    host = make_host("Hopper-v4")
    actions = np.random.default_rng(0).uniform(-1, 1, (60, 1, 3))

    def end(limit):
        with make_host("Hopper-v4", time_limit=limit).open(1, 2) as batch:
            batch.reset()
            for k, action in enumerate(actions):
                step = batch.step(action)
                if step.terminated[0] or step.truncated[0]:
                    return k + 1, bool(step.terminated[0]), bool(step.truncated[0])
        raise AssertionError("no end")

    length = end(host.time_limit)[0]
    assert end(host.time_limit) == (length, True, False)
    assert end(length) == (length, True, False)
    assert end(length - 1) == (length - 1, False, True)


def test_seeds_say_everything():
    host = make_host("Hopper-v4")
    actions = np.random.default_rng(0).uniform(-1, 1, (30, 4, 3))

    def path(batch):
        return np.array([batch.step(a[: batch.count]).observations for a in actions])

    with host.open(4, 3) as batch, host.open(4, 3) as again, host.open(2, 3) as fewer, host.open(4, 4) as other:
        starts = [b.reset() for b in (batch, again, fewer, other)]
        paths = [path(b) for b in (batch, again, fewer, other)]
        np.testing.assert_array_equal(paths[0], paths[1])
        np.testing.assert_array_equal(paths[0][:, :2], paths[2])
        assert not np.allclose(starts[0], starts[3])
        np.testing.assert_array_equal(batch.reset(seed=3), starts[0])
        np.testing.assert_array_equal(path(batch), paths[0])
        np.testing.assert_array_equal(batch.reset(), again.reset())


def test_arrays_that_were_returned_stay_as_they_are():
    with make_host("CartPole-v1", backend="envpool").open(2, 0) as batch:
        batch.reset()
        steps = [batch.step(np.array([0, 1])) for _ in range(60)]
        kept = [[x.copy() for x in step[:-1]] for step in steps]
        for _ in range(60):
            batch.step(np.array([1, 0]))
    for step, copies in zip(steps, kept, strict=True):
        for now, then in zip(step[:-1], copies, strict=True):
            np.testing.assert_array_equal(now, then)


def test_which_backend_is_taken():
    speed = {"speed": lambda t: t.info["x_velocity"]}
    assert isinstance(make_host("Hopper-v4", speed), EnvPoolEnvironment)
    assert isinstance(make_host("Hopper-v3", speed), EnvPoolEnvironment)  # Gymnasium has it no more
    assert isinstance(make_host("CheetahRun-v1"), EnvPoolEnvironment)
    assert isinstance(make_host("Hopper-v5", {"forward": "info:reward_forward"}), GymnasiumEnvironment)
    assert isinstance(make_host("Hopper-v5", options={"render_mode": None}), GymnasiumEnvironment)
    assert isinstance(make_host("Humanoid-v4", backend="gymnasium"), GymnasiumEnvironment)
    assert isinstance(make_host("FrozenLake-v1"), GymnasiumEnvironment)
    assert isinstance(make_host(functools.partial(gymnasium.make, "CartPole-v1")), GymnasiumEnvironment)
    pair = [make_host("Hopper-v5", {"return": "reward"}) for _ in range(2)]
    assert pair[0] == pair[1]
    assert hash(pair[0]) == hash(pair[1])


def test_observations_of_other_kinds_are_flat_as_gymnasium_flattens_them():
    lake = make_host("FrozenLake-v1", backend="envpool")
    with lake.open(3, 0) as batch:
        batch.reset()
        seen = np.array([batch.step(np.full(3, k % 4)).next_observations for k in range(40)])
    assert lake.observation_size == 16
    np.testing.assert_array_equal(seen.sum(axis=-1), 1)
    assert seen.any(axis=(0, 1)).sum() > 3
    maze = make_host("MiniGrid-Empty-5x5-v0")
    assert maze.observation_size == 4 + 7 * 7 * 3 + 96
    with maze.open(2, 0) as batch:
        first = batch.reset()
    np.testing.assert_array_equal(first[:, :4].sum(axis=1), 1)
    assert isinstance(make_host("Taxi-v3"), EnvPoolEnvironment)


def test_options_reach_the_pool():
    host = make_host("Hopper-v4", options={"exclude_current_positions_from_observation": False})
    assert isinstance(host, EnvPoolEnvironment)
    assert host.observation_size == 12


@pytest.mark.parametrize(
    ("env", "settings", "words"),
    [
        ("Hopper-v9", {}, "EnvPool has no 'Hopper-v9'; leave backend='auto'"),
        (dict, {}, "backend='envpool' needs an id such as 'Hopper-v5'"),
        ("Hopper-v4", {"options": {"num_envs": 3}}, "does not take the option 'num_envs'; it takes .*frame_skip"),
        ("Pong-v5", {"options": {"frames": 3}}, "does not take the option 'frames'"),
        ("Blackjack-v1", {}, "has no time limit; pass time_limit"),
    ],
)
def test_what_the_backend_refuses(env, settings, words):
    with pytest.raises(SettingsError, match=words):
        make_host(env, backend="envpool", **settings)


def test_objectives_it_does_not_show():
    with pytest.raises(ObjectiveError, match="info\\['sped'\\], which this step does not have; it has .*x_velocity"):
        make_host("Hopper-v4", {"speed": "info:sped"}, backend="envpool")
    with pytest.raises(ObjectiveError, match="info\\['sped'\\]"):
        make_host("Hopper-v3", {"speed": "info:sped"})


def test_without_envpool(monkeypatch):
    monkeypatch.setitem(sys.modules, "envpool", None)
    assert isinstance(make_host("CartPole-v1"), GymnasiumEnvironment)
    with pytest.raises(SettingsError, match="EnvPool, which is not here; pip install 'arnpg\\[envpool\\]'"):
        make_host("CartPole-v1", backend="envpool")
    with pytest.raises(SettingsError, match="Hopper-v3 .*take Hopper-v5, or pip install 'arnpg\\[envpool\\]'"):
        make_host("Hopper-v3")


def test_actions_are_checked_and_clipped():
    with make_host("Hopper-v4", {"push": lambda t: t.action[:, 0]}).open(2, 0) as batch:
        with pytest.raises(SettingsError, match="step was called before reset"):
            batch.step(np.zeros((2, 3)))
        batch.reset()
        np.testing.assert_array_equal(batch.step(np.full((2, 3), 7.0)).rewards, [[1.0], [1.0]])
        with pytest.raises(NumericalError, match="actions\\[1\\] is .*nan"):
            batch.step(np.array([[0, 0, 0], [0, np.nan, 0]]))
        with pytest.raises(SettingsError, match="one for each of 2 environments, got 3"):
            batch.step(np.zeros((3, 3)))
    batch.close()
    with pytest.raises(SettingsError, match="the environments of Hopper-v4 are closed"):
        batch.reset()


def test_numbers_that_are_none_are_faults(monkeypatch):
    batch = make_host("Hopper-v4", {"speed": "info:x_velocity", "log": lambda t: np.log(t.reward)}).open(2, 0)
    assert isinstance(batch, EnvPoolBatch)
    batch.reset()
    for _ in range(2):
        batch.step(np.zeros((2, 3)))
    stepped = Pool.step

    def broken(self, actions):
        step, info = stepped(self, actions)
        step.next_observations[1, 4] = np.nan
        return step, info

    monkeypatch.setattr(Pool, "step", broken)
    with pytest.raises(EnvironmentFault, match="environment 1, seed \\d+, step 3: observation\\[4\\] is nan") as caught:
        batch.step(np.full((2, 3), 0.5))
    np.testing.assert_array_equal(caught.value.details["episode_actions"], [[0] * 3, [0] * 3, [0.5] * 3])
    with pytest.raises(SettingsError, match="closed"):
        batch.step(np.zeros((2, 3)))


def test_a_dropped_episode_is_marked_counted_and_begun_anew(monkeypatch):
    actions = np.random.default_rng(0).uniform(-1, 1, (12, 3, 3))
    with make_host("Hopper-v4").open(3, 0) as batch:
        first = batch.reset()
        sound = [batch.step(a) for a in actions]
    stepped, now = Pool.step, [0]

    def broken(self, given):
        step, info = stepped(self, given)
        now[0] += 1
        if now[0] == 5:
            step.next_observations[1, 4] = np.nan
        return step, info

    with make_host("Hopper-v4", on_fault="drop").open(3, 0) as batch:
        monkeypatch.setattr(Pool, "step", broken)
        np.testing.assert_array_equal(batch.reset(), first)
        steps = [batch.step(a) for a in actions]
    for ours, theirs in zip(steps, sound, strict=True):
        for a, b in zip(ours[:-1], theirs[:-1], strict=True):
            np.testing.assert_array_equal(a[[0, 2]], b[[0, 2]])
    lost = steps[4]
    assert [step.dropped is not None for step in steps] == [k == 4 for k in range(12)]
    assert lost.dropped.tolist() == [False, True, False]
    np.testing.assert_array_equal(lost.next_observations[1], steps[3].observations[1])
    assert (lost.rewards[1], lost.terminated[1], lost.truncated[1]) == (0, False, True)
    assert np.isfinite(lost.observations).all()
    assert not np.array_equal(lost.observations[1], sound[4].observations[1])
    assert [(fault.environment, fault.step) for fault in batch.faults] == [(1, 5)]


def test_nested_arrays_take_the_long_way_and_give_the_same():
    host = make_host("Hopper-v4", {"speed": "info:x_velocity"})
    actions = np.random.default_rng(0).uniform(-1, 1, (40, 2, 3))
    with host.open(2, 0) as quick, host.open(2, 0) as slow:
        assert quick._pool.exchange.plain
        slow._pool.exchange.plain = False
        np.testing.assert_array_equal(quick.reset(), slow.reset())
        for action in actions:
            for a, b in zip(quick.step(action)[:-1], slow.step(action)[:-1], strict=True):
                np.testing.assert_array_equal(a, b)
                assert a.dtype == b.dtype


def test_an_objective_that_is_no_number():
    with make_host("Hopper-v4", {"odd": lambda t: np.where(t.next_observation[:, 0] > 0, np.inf, 0)}).open(2, 0) as b:
        b.reset()
        with pytest.raises(EnvironmentFault, match="environment 0.*objective 'odd' is inf"):
            b.step(np.zeros((2, 3)))


def test_a_source_is_a_value():
    assert PoolSource("Hopper-v4") == PoolSource("Hopper-v4")
    assert PoolSource("Hopper-v4") != PoolSource("Hopper-v5")
