import numpy as np
import pytest

import arnpg
from arnpg.trained import TrainedRun


def test_the_demo_solves_saves_and_draws(command, tmp_path):
    pytest.importorskip("matplotlib")
    code, out, _ = command("demo", "--known")
    assert code == 0
    for word in ("random CMDP", "one server", "4.4624", "0.2427", "max-min"):
        assert word in out
    assert "CartPole" not in out
    assert (tmp_path / "demo" / "region.png").read_bytes().startswith(b"\x89PNG")
    assert arnpg.load_model(tmp_path / "demo" / "two_class_queue.npz").states == 81


@pytest.mark.slow
def test_the_demo_trains_a_policy_that_learns_under_its_limit(command, tmp_path):
    """From 20 steps to nearly all of 500, near a limit of a fifth of what the cart travels without one."""
    code, out, err = command("demo")
    assert code == 0, err
    assert "CartPole, 3 seeds" in out
    run = TrainedRun.load(tmp_path / "demo" / "trained.npz")
    assert run.trace.values[:, 0, 0].max() < 100
    assert (tmp_path / "demo" / "training.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = command("evaluate", "demo/trained.npz", "--episodes", "200")
    assert code == 0
    assert "sampled actions" in out
    assert "most probable actions" in out
    fresh = arnpg.evaluate(arnpg.envs.CartPole(), run, episodes=200).totals.mean(axis=1)
    # Nine seeds tried ended at 456 to 500 and 15 to 61 in training; a policy of one iteration moves by a few.
    assert np.median(fresh[:, 0]) > 400
    assert np.median(fresh[:, 1]) < 1.25 * 60


def test_without_matplotlib_it_says_how_to_get_it(command, monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    code, out, _ = command("demo", "--known", "--out", "elsewhere")
    assert code == 0
    assert "arnpg[plot]" in out


def test_a_folder_that_cannot_be_made(command, tmp_path):
    (tmp_path / "file").write_text("")
    assert command("demo", "--out", "file/below")[0] == 5
