import numpy as np
import pytest

import arnpg


def test_a_model(command, model):
    code, out, _ = command("describe", model)
    assert code == 0
    for word in ("20 reachable", "0 absorbing", "horizon of 5 steps", "throughput", "battery", "4.525"):
        assert word in out


def test_a_solution(command, model):
    assert command("solve", model, "--max-min", "--out", "s.npz")[0] == 0
    code, out, _ = command("describe", "s.npz")
    assert code == 0
    for word in ("s.npz: a solution", "maximise the least of throughput, battery", "certified"):
        assert word in out


def test_unreachable_and_absorbing_states_and_notes(command, tmp_path):
    transitions = np.zeros((4, 1, 4))
    transitions[[0, 1, 2, 3], 0, [1, 2, 2, 0]] = 1
    mdp = arnpg.MDP(transitions, {"a": np.full((4, 1), 7.0)}, discount=0.9, initial=[0, 1, 0, 0])
    arnpg.save_model(mdp, tmp_path / "m.npz")
    code, out, _ = command("describe", "m.npz")
    assert code == 0
    assert "4 (2 reachable, 1 absorbing, 1 to start from)" in out
    assert "outside [0, 1]" in out


def test_ranges_are_the_extremes_of_the_value():
    from arnpg.cli.describe import value_ranges

    transitions = np.ones((1, 2, 1))
    mdp = arnpg.MDP(transitions, {"a": [[1.0, 3.0]], "b": [[0.0, -2.0]]}, discount=0.5)
    assert np.array(value_ranges(mdp)) == pytest.approx(np.array([[2.0, 6.0], [-4.0, 0.0]]))


def test_no_file_given(command):
    code, _, err = command("describe")
    assert code == 2
    assert "which file" in err
