"""Bad environments, each with the finding that names its fault; and good ones that pass."""

import functools
import os
import time

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from host_environments import Misbehaving, SixTuple, Spaces, TwoRewards, VectorMisbehaving, Walk

from arnpg.envs import check_environment, make_host
from arnpg.envs.replay import replay
from arnpg.envs.versions import backend_versions
from arnpg.errors import EnvironmentFault, SettingsError, StorageError
from arnpg.runs.fault_file import read_fault, write_fault


class Forgetful(Walk):
    """Draws from NumPy's global generator."""

    def step(self, action):
        self.position += np.random.normal()
        return super().step(action)


class Remembering(Walk):
    """Begins a little further on in every episode."""

    carried = 0.0

    def reset(self, *, seed=None, options=None):
        seen, info = super().reset(seed=seed, options=options)
        self.position += Remembering.carried
        Remembering.carried += 0.001
        return self.seen(), info


class Narrow(Walk):
    """Says that positions stay below 1.5."""

    def __init__(self):
        super().__init__(start=2.0)
        self.observation_space = spaces.Box(-1.0, 1.5, (2,), np.float64)


class Endless(Walk):
    """Never ends by itself, and nothing in it is random."""

    def __init__(self):
        super().__init__(start=0.0, length=1e9, patience=10**9)

    def step(self, action):
        seen, _, *rest, _ = super().step(action)
        return seen, 1.0, *rest, {}


class Unbounded(Walk):
    """Takes any push."""

    def __init__(self):
        super().__init__()
        self.action_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)


class OneStep(Walk):
    """Over at once, always."""

    def step(self, action):
        seen, reward, _, _, info = super().step(action)
        return seen, reward, True, False, info


class Sleeper(Walk):
    def step(self, action):
        if self.elapsed == 5 and os.getppid() != int(os.environ["ARNPG_TEST_GRANDPARENT"]):
            time.sleep(3600)
        return super().step(action)


class Crasher(Walk):
    def step(self, action):
        if self.elapsed == 5 and os.getppid() != int(os.environ["ARNPG_TEST_GRANDPARENT"]):
            os.abort()
        return super().step(action)


class ClosesOnce(Walk):
    def close(self):
        if hasattr(self, "done"):
            raise RuntimeError("the window is gone")
        self.done = True


class Single(Walk):
    """float32 promised, float64 given."""

    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Box(-100, 100, (2,), np.float32)


def findings(env, **settings):
    return check_environment(env, **{"time_limit": 20, "steps": 300, **settings})


def texts(found, holds):
    return [f"{finding.check}: {finding.text}" for finding in found if finding.holds is holds]


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (Forgetful, "same seed: another path: .* Draw all randomness from self.np_random"),
        (Remembering, "same seed: another path: the first observation differs"),
        (Narrow, "bounds: observation\\[\\d\\] is .*, above high=1.5; widen the space"),
        (ClosesOnce, "close: called a second time it raised RuntimeError: the window is gone"),
        (functools.partial(Misbehaving, "nan observation"), "first steps: .*observation\\[1\\] is nan"),
        (functools.partial(Misbehaving, "nan reward"), "first steps: .*the reward is nan"),
        (functools.partial(Misbehaving, "shape"), "first steps: .*has shape \\(3,\\), observation_space says \\(2,\\)"),
        (functools.partial(Misbehaving, "late vector"), "first steps: .*a vector of 2, and should be a number"),
        (functools.partial(Misbehaving, "raises"), "first steps: .*the simulator fell over"),
        (functools.partial(Misbehaving, "over at reset"), "first steps: .*already over"),
        (functools.partial(Misbehaving, "no info"), "first steps: .*reset must return"),
        (functools.partial(Misbehaving, "short"), "first steps: .*step must return .* got 4 values"),
        (functools.partial(VectorMisbehaving, "long"), "first steps: .*a vector of 3, and should be a vector of 2"),
        (lambda: Spaces(spaces.Text(3), spaces.Discrete(2)), "observation_space: .*cannot be flattened"),
        (lambda: Spaces(spaces.Discrete(2), spaces.MultiBinary(2)), "action_space: .* is not supported"),
        (lambda: Spaces(spaces.Discrete(2), spaces.Box(-1, 1, (0,))), "action_space: .*"),
        (functools.partial(Sleeper), "steps: .*did not answer within 1 s"),
        (functools.partial(Crasher), "steps: .*its process was killed by SIGABRT"),
    ],
    ids=lambda x: None if isinstance(x, str) else getattr(x, "__name__", str(getattr(x, "args", x))),
)
def test_a_fault_is_found_and_named(env, words, monkeypatch):
    monkeypatch.setenv("ARNPG_TEST_GRANDPARENT", str(os.getppid()))
    wrong = texts(findings(env, step_timeout=1.0), False)
    assert len(wrong) == 1
    pytest.raises(EnvironmentFault, raising, wrong[0]).match(words)


def raising(text):
    raise EnvironmentFault(text)


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (Endless, "episodes: none ended by itself in 300 steps; they are truncated after 20. .*at most discount\\^20"),
        (Endless, "objective return: is constant under random actions"),
        (Endless, "another seed: the same path: nothing is random"),
        (Unbounded, "actions: have no bounds"),
        (OneStep, "episodes: every one is over after one step"),
        (Single, "bounds: observations are float64, the space says float32"),
        (functools.partial(Misbehaving, "key goes away", at=5), "info: cost in some steps only"),
    ],
)
def test_what_is_worth_knowing(env, words):
    settings = {"objectives": {"return": "reward"}}
    found = findings(env, **settings)
    assert not texts(found, False)
    pytest.raises(EnvironmentFault, raising, " | ".join(texts(found, None))).match(f".*{words}")


@pytest.mark.parametrize("env", [Walk, TwoRewards, SixTuple, "CartPole-v1", "Hopper-v4", "Hopper-v3", "FrozenLake-v1"])
def test_good_ones_pass(env):
    found = findings(env)
    assert not texts(found, False)
    assert any("to the last bit" in text for text in texts(found, True))


def test_what_is_said_of_a_good_one():
    said = " | ".join(texts(findings(functools.partial(TwoRewards, length=1.5)), True))
    for words in (
        "time limit: 20 steps",
        "observation_space: Box(-100.0, 100.0, (2,), float64)",
        "reward: a vector of 2",
        "backend: Gymnasium: observations of size 2, actions of size 1 in [-1, 1]",
        "objectives: position, effort",
        "terminated",
        "objective effort: -1 to ",
    ):
        assert words in said
    assert "time limit: has none" in " ".join(texts(check_environment(Walk, steps=50), None))


def test_no_environment_at_all():
    with pytest.raises(SettingsError, match="perhaps you meant CartPole"):
        check_environment("CartPoll-v1")
    with pytest.raises(SettingsError, match="steps must be at least 10, got 3"):
        check_environment(Walk, steps=3)


def broken(env, index, **settings):
    with make_host(env, time_limit=9, **settings).open(2, 3) as batch:
        batch.reset()
        with pytest.raises(EnvironmentFault) as caught:
            [batch.step(np.full((2, 1), 0.25)) for _ in range(40)]
    return caught.value


class Unlucky(Walk):
    """Breaks when chance wills it, not in its first episode."""

    def step(self, action):
        seen, reward, *rest = super().step(action)
        if self.np_random.uniform() < 0.02:
            raise RuntimeError(f"at {self.position!r}")
        return seen, reward, *rest


def test_a_fault_is_recorded_and_comes_again(tmp_path):
    fault = broken(Unlucky, 0)
    assert int(fault.details["episode"]) > 0
    path = write_fault(tmp_path, fault)
    assert path.name == "fault.npz"
    record = read_fault(path)
    assert str(record["message"]) == str(fault)
    again = replay(Unlucky, record)
    assert str(again).partition(": ")[2] == str(fault).partition(": ")[2]  # to the last digit of the position
    assert replay(Walk, record) is None


def test_records_that_cannot_be_replayed(tmp_path):
    fault = broken(Unlucky, 0)
    del fault.details["random_state"]
    with pytest.raises(SettingsError, match="the record has no random_state: the fault was seen from outside"):
        replay(Unlucky, read_fault(write_fault(tmp_path, fault)))
    (tmp_path / "other.npz").write_bytes(b"not a zip")
    with pytest.raises(StorageError, match="other.npz is not a fault that was recorded"):
        read_fault(tmp_path / "other.npz")
    with pytest.raises(StorageError, match="none.npz cannot be read"):
        read_fault(tmp_path / "none.npz")


def test_versions_of_what_steps_it():
    assert backend_versions(make_host("Hopper-v4")).keys() == {"envpool"}
    assert backend_versions(make_host("Hopper-v5", backend="gymnasium")).keys() == {"gymnasium", "mujoco"}
    assert backend_versions(make_host("CartPole-v1", backend="gymnasium")) == {"gymnasium": gymnasium.__version__}
    assert backend_versions(make_host("four-room-v0")).keys() == {"gymnasium", "mo-gymnasium"}
    assert backend_versions(make_host(Walk, time_limit=3)).keys() == {"gymnasium"}
