import numpy as np
import pytest

WALK = '''
import gymnasium, numpy as np

class Walk(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gymnasium.spaces.Discrete(2)
    broken = False

    def __init__(self, step=1.0):
        self.size = step

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.normal(size=1).astype(np.float32)
        return self.x, {}

    def step(self, action):
        self.x = self.x + np.float32(self.size * (2 * action - 1))
        reward = float("nan") if self.broken and abs(self.x[0]) > 3 else -abs(float(self.x[0]))
        return self.x, reward, bool(abs(self.x[0]) > 9), False, {"right": float(action)}

class Broken(Walk):
    broken = True
'''


@pytest.fixture
def walk(tmp_path, monkeypatch):
    (tmp_path / "walks_of_mine.py").write_text(WALK)
    monkeypatch.syspath_prepend(tmp_path)
    return "walks_of_mine:Walk"


def test_a_good_one(command, walk):
    code, out, err = command("check-env", walk, "--time-limit", "50", "--steps", "400")
    assert (code, err) == (0, "")
    for words in ("FAIL", "note"):
        assert words not in out
    for words in ("time limit", "50 steps", "one of 2 actions", "info:right", f"{walk} is fit for training"):
        assert words in out


def test_a_bad_one(command, walk):
    code, out, err = command("check-env", "walks_of_mine:Broken", "--time-limit", "50")
    assert code == 4
    assert "FAIL  first steps" in out
    assert "the reward is nan" in out
    assert "walks_of_mine:Broken is not fit for training: 1 of 4 checks failed" in err


def test_objectives_and_options(command, walk):
    found = command("check-env", walk, "--objective", "near=reward", "going=info:right", "--option", "step=0.5",
                    "--time-limit", "50", "--steps", "100")  # fmt: skip
    assert found[0] == 0
    assert "near, going" in found[1]
    assert "0 to 1 a step" in found[1]
    code, out, _ = command("check-env", walk, "--objective", "near=info:left", "--time-limit", "50")
    assert code == 4
    assert "asks for info['left'], which this step does not have; it has right" in out


def test_a_recorded_fault_is_played_again(command, walk, tmp_path):
    from arnpg.envs import make_host
    from arnpg.errors import EnvironmentFault
    from arnpg.runs.fault_file import write_fault

    batch = make_host("walks_of_mine:Broken", time_limit=50).open(2, 0)
    batch.reset()
    with pytest.raises(EnvironmentFault) as caught:
        [batch.step(np.array([1, 1])) for _ in range(20)]
    write_fault(tmp_path, caught.value)
    code, _, err = command("check-env", "walks_of_mine:Broken", "--replay", "fault.npz")
    assert code == 4
    assert "it comes again: environment" in err
    code, out, _ = command("check-env", walk, "--replay", "fault.npz")
    assert code == 0
    assert "It does not come again" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "which environment?"),
        (["CartPoll-v1"], "'CartPoll-v1' is not the id of an environment; perhaps you meant CartPole"),
        (["nowhere:Env"], "nowhere:Env cannot be imported"),
        (["CartPole-v1", "--steps", "many"], "--steps must be a whole number, got 'many'"),
        (["CartPole-v1", "--objective", "near"], "--objectives takes NAME=VALUE, such as cost=info:cost, got 'near'"),
        (["CartPole-v1", "--step-timeout", "soon"], "--step-timeout must be a number of seconds"),
        (["CartPole-v1", "--stepz", "3"], "perhaps you meant --steps"),
    ],
)
def test_bad_input(command, arguments, words):
    code, _, err = command("check-env", *arguments)
    assert code == 2
    assert words in err


def test_help_teaches(command):
    code, out, _ = command("check-env", "--help")
    assert code == 0
    for words in ("module:Class", "FAIL", "exit codes", "--objectives return=reward speed=info:x_velocity", "--replay"):
        assert words in out


def test_files_in_this_folder_are_found(shell, walk):
    found = shell("check-env", walk, "--time-limit", "50", "--steps", "50", PYTHONSAFEPATH="1")
    assert found.returncode == 0, found.stderr
    assert "fit for training" in found.stdout
