"""What a new user with an environment of their own gets wrong, and places that cannot be written to."""

import pytest

OWN = """
import gymnasium
import numpy as np
from gymnasium import spaces


class Robot(gymnasium.Env):
    reward_names = ("parcels", "energy")

    def __init__(self, size=5):
        place = spaces.Box(0, size - 1, (2,), np.int64)
        self.observation_space = spaces.Dict({"place": place, "battery": spaces.Box(0, 1, (), np.float32)})
        self.action_space = spaces.MultiDiscrete([3, 2])
        self.size = size

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.integers(0, self.size, 2)
        return {"place": self.place, "battery": np.float32(1)}, {}

    def step(self, action):
        self.place = np.clip(self.place + np.array([action[0] - 1, action[1]]), 0, self.size - 1)
        reward = np.array([float(self.place[0]), -1.0])
        return {"place": self.place, "battery": np.float32(0.5)}, reward, False, False, {}
"""
SMALL = ["--iterations", "2", "--quiet", "--set", "policy.hidden=8", "critic.hidden=8", "rollout.paths=2"]
TRAIN = ["train", "robot:Robot", "--time-limit", "6", *SMALL, "rollout.steps=6"]


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "robot.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)


def test_a_dict_and_a_multi_discrete_from_check_to_page(own, command):
    code, out, err = command("check-env", "robot:Robot", "--time-limit", "6", "--steps", "100", "--option", "size=3")
    assert (code, err) == (0, "")
    assert "parcels, energy" in out
    limited = ["--maximize", "parcels", "--at-least", "energy=-7", "--option", "size=3", "--on-fault", "drop"]
    code, out, err = command(*TRAIN, *limited, "--out", "run")
    assert (code, err) == (0, "")
    assert "truncated: no episode" in out
    assert command("evaluate", "run", "--episodes", "3")[0] == 0
    code, _, err = command("evaluate", "run/trained.npz", "--episodes", "3")
    assert code == 2
    assert "was trained on your own Robot; give it as --env MODULE:Robot" in err
    known = ["--env", "robot:Robot", "--time-limit", "6", "--option", "size=3"]
    assert command("evaluate", "run/trained.npz", "--episodes", "3", *known)[0] == 0
    assert command("report", "run")[0] == 0
    code, _, err = command(*TRAIN, "--fair", "--out", "fair")
    assert code == 2
    assert "at values of parcels" in err
    assert "energy -6: the objective has no finite value or gradient there" in err
    assert "(--offset)" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["robot:Robto", "--maximize", "parcels"], "module robot has no 'Robto'; perhaps you meant Robot?"),
        (["CartPole", "--maximize", "return"], "'CartPole' lacks its version; perhaps you meant CartPole-v"),
        (["robot:Robot", "--maximize", "parcels"], "has no time limit, and its episodes may never end; pass time"),
        (["robot:Robot", "--maximize", "parcels", "--iterations", "-3"], "--iterations must be a whole number >= 1"),
        (["robot:Robot", "--maximize", "parcels", "--time-limit", "0"], "--time-limit must be a whole number >= 1"),
        (["robot:Robot", "--maximize", "parcels", "--option", "sise=3"], "cannot be made with the options {'sise': 3}"),
        (["robot:Robot", "--maximize", "parcels", "--option", "3"], "--option takes NAME=VALUE, such as size=5"),
        (
            ["robot:Robot", "--maximize", "parcels", "--at-least", "energy=1", "--discounted", "enrgy=.5"],
            "--discounted names 'enrgy', which has no limit; perhaps you meant energy?",
        ),
    ],
)
def test_each_mistake_has_its_sentence(own, command, words, message):
    code, out, err = command("train", *words)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    "words",
    [
        ["solve", "model.npz", "--fair", "--out", "missing/s.npz"],
        ["solve", "model.npz", "--fair", "--plot", "file/s.png"],
        ["solve", "model.npz", "--fair", "--checkpoint", "missing/c.npz"],
        ["demo", "--known", "--out", "file"],
    ],
    ids=["out", "plot", "checkpoint", "demo"],
)
def test_a_place_that_cannot_be_written_is_named_with_the_cure(command, tmp_path, words):
    from arnpg.examples import random_cmdp
    from arnpg.tabular.readers import save_model

    save_model(random_cmdp(), tmp_path / "model.npz")
    (tmp_path / "file").touch()
    code, out, err = command(*words)
    assert (code, out) == (5, "")
    assert f"{words[-2]} {words[-1]} cannot be written: " in err
    assert any(cure in err for cure in ("make it first", "choose another folder"))
    assert "Errno" not in err
