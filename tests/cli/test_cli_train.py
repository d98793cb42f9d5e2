"""``arnpg train``, ``evaluate``, ``resume`` and ``report`` of a small run, and what a user may get wrong."""

import json

import numpy as np
import pytest

import arnpg

SMALL = ["policy.hidden=8", "critic.hidden=8", "rollout.paths=4", "rollout.steps=50"]
TRAIN = ["train", "cartpole", "--maximize", "upright", "--at-most", "distance=5", "--iterations", "20", "--seeds", "2"]

OWN = """
import jax.numpy as jnp
from arnpg.envs import CartPole

def far():
    return CartPole({"far": lambda t: jnp.abs(t.state.position)})

NOTHING = 3
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished run's folder, and what the command said."""
    import contextlib
    import io

    from arnpg.cli import main

    place, out, err = tmp_path_factory.mktemp("trained"), io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*TRAIN, "--set", *SMALL, "--out", str(place / "deep" / "run"), "--quiet"])
    assert code == 0, err.getvalue()
    return place / "deep" / "run", out.getvalue(), err.getvalue()


def test_train_says_what_came_out_and_where_it_is(trained):
    folder, out, err = trained
    for words in ("2 seeds, 20 iterations, 4,000 steps", "distance <= 5", "kept by", "arnpg evaluate"):
        assert words in out
    assert err == ""
    config = json.loads((folder / "config.json").read_text())
    assert config["kind"] == "train"
    assert config["config"]["command"]["env"] == "cartpole"
    assert config["config"]["settings"]["rollout.paths"] == "4"


def test_it_is_the_run_of_python(trained):
    settings = {word.partition("=")[0]: word.partition("=")[2] for word in SMALL}
    criterion = arnpg.Constrained("upright", at_most={"distance": 5})
    found = arnpg.train(arnpg.envs.CartPole(), criterion, iterations=20, seeds=2, progress=False, **settings)
    stored = arnpg.load(trained[0] / "trained.npz")
    np.testing.assert_array_equal(found.trace.values, stored.trace.values)


def test_evaluate_prints_both_kinds_of_action(trained, command):
    code, out, _ = command("evaluate", trained[0], "--episodes", "30", "--which", "best", "--seed", "7")
    assert code == 0
    for words in ("2 policies, 30 episodes each, sampled", "2 policies, 30 episodes each, most probable", "% <= 5"):
        assert words in out
    assert "of 2 policies keep all limits in the mean" in out
    assert command("evaluate", trained[0], "--episodes", "30", "--which", "best", "--seed", "7")[1] == out


def test_again_resume_and_report(trained, command):
    folder = trained[0]
    code, out, _ = command(*TRAIN, "--set", *SMALL, "--out", folder, "--quiet")
    assert code == 0
    assert out.splitlines()[:8] == trained[1].splitlines()[:8]
    code, out, _ = command("resume", folder)
    assert code == 0
    assert "is finished" in out
    code, _, err = command("report", folder, "--out", "page.html")
    assert code == 0, err
    code, _, err = command(*TRAIN, "--seed", "4", "--set", *SMALL, "--out", folder, "--quiet")
    assert code == 5
    assert "holds a run of another configuration; choose another folder" in err


def test_interrupted_it_is_resumed(trained, command, tmp_path, monkeypatch):
    """A folder as a kill leaves it, with a configuration and no checkpoint."""
    import arnpg.training as training

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(training.Teller, "__call__", killed)
        assert command(*TRAIN, "--set", *SMALL, "--out", "half", "--quiet")[0] == 130
    assert not (tmp_path / "half" / "trained.npz").exists()
    code, _, err = command("evaluate", "half")
    assert code == 2
    assert "is not finished; `arnpg resume half` continues it" in err
    assert command("resume", "half", "--quiet")[0] == 0
    one, other = (arnpg.load(folder / "trained.npz") for folder in (tmp_path / "half", trained[0]))
    np.testing.assert_array_equal(one.trace.values, other.trace.values)


def test_environments_of_ones_own(command, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    short = ["--iterations", "1", "--set", *SMALL, "--quiet"]
    code, out, err = command("train", "mine:far", "--linear", "far=-1", "--out", "own", *short)
    assert code == 0, err
    assert "far" in out
    assert command("evaluate", "own", "--episodes", "3")[0] == 0
    code, _, err = command("evaluate", "own/trained.npz", "--episodes", "3")
    assert code == 2
    assert "trained for ('far',), but the environment has ('upright', 'distance'); give the one it was" in err
    assert command("evaluate", "own/trained.npz", "--episodes", "3", "--env", "mine:far")[0] == 0
    code, _, err = command("train", "mine:NOTHING", "--linear", "far=-1", *short)
    assert code == 2
    assert "mine:NOTHING is a int, not an environment" in err


def test_environments_of_gymnasium(command):
    """Objectives by where they come from; `evaluate` knows them from the folder, or is told."""
    small = ["--iterations", "2", "--set", "policy.hidden=8", "critic.hidden=8", "rollout.paths=2", "rollout.steps=30"]
    world = ["--objectives", "up=reward", "--time-limit", "20", "--backend", "gymnasium"]
    limit = ["--at-most", "up=5", "--discounted", "up=0.5", "--method", "focops", "--quiet"]
    code, out, err = command("train", "CartPole-v1", "--maximize", "up", *limit, *world, *small, "--out", "gym")
    assert code == 0, err
    assert "CartPole-v1" in out
    code, out, err = command("evaluate", "gym", "--episodes", "3")
    assert code == 0, err
    assert "up" in out
    assert command("evaluate", "gym/trained.npz", "--episodes", "3", *world)[0] == 0
    code, _, err = command("train", "CartPole-v1", "--maximize", "up", "--objectives", "up", *small)
    assert code == 2
    assert "--objectives takes NAME=VALUE, such as cost=info:cost" in err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["train"], 2, "which environment? acrobot,"),
        (["train", "acrobt", "--maximize", "height"], 2, "perhaps you meant acrobot"),
        (["train", "no.such:Thing", "--maximize", "x"], 2, "no.such:Thing cannot be imported"),
        (["train", "cartpole"], 2, "give one of --maximize NAME"),
        (["train", "cartpole", "--maximize", "uprigt"], 2, "upright"),
        (["train", "cartpole", "--maximize", "upright", "--at-most", "distance"], 2, "distance"),
        (["train", "cartpole", "--maximize", "upright", "--at-most", "speed=3"], 2, "speed"),
        (["train", "cartpole", "--maximize", "upright", "--seeds", "two"], 2, "--seeds must be a whole number"),
        (["train", "cartpole", "--maximize", "upright", "--seeds", "0"], 2, "seeds must"),
        (["train", "cartpole", "--maximize", "upright", "--iterations", "-3"], 2, "--iterations must be a whole"),
        (["train", "cartpole", "--maximize", "upright", "--iterations", "0"], 2, "iterations must be a whole number"),
        (["train", "cartpole", "--maximize", "upright", "--method", "ppo"], 2, "method must be one of"),
        (["train", "cartpole", "--maximize", "upright", "--method", "arnpg-epd"], 2, "smooth objective under constr"),
        (["train", "cartpole", "--maximize", "upright", "--set", "rollout.path=3"], 2, "Rollout has paths"),
        (["train", "cartpole", "--maximize", "upright", "--set", "rollout.paths=0"], 2, "paths must be at least 1"),
        (["train", "cartpole", "--maximize", "upright", "--set", "policy.activation=relux"], 2, "must be one of relu"),
        (["train", "cartpole", "--maximize", "upright", "--sed", "3"], 2, "--seed"),
        (["evaluate"], 2, "which run?"),
        (["evaluate", "nothing"], 2, "nothing does not exist"),
        (["evaluate", "nothing.npz"], 2, "nothing.npz"),
    ],
)
def test_what_a_user_may_get_wrong(command, tmp_path, words, code, said):
    found, out, err = command(*words)
    assert (found, out) == (code, ""), err
    assert said in err
    assert "Traceback" not in err
    assert not list(tmp_path.glob("runs/*/config.json"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--episodes", "0"], "--episodes must be a whole number >= 1, got '0'"),
        (["--episodes", "1e3"], "--episodes must be a whole number, got '1e3'"),
        (["--which", "first"], "which must be one of best, last, got 'first'"),
        (["--env", "pendulum"], "the run was trained for ('upright', 'distance')"),
        (["--env", "acrobot"], "the run was trained for ('upright', 'distance')"),
    ],
)
def test_what_a_user_may_get_wrong_in_evaluate(trained, command, words, said):
    code, out, err = command("evaluate", trained[0], *words)
    assert (code, out) == (2, "")
    assert said in err
