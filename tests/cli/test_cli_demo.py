import pytest

import arnpg


def test_the_demo_solves_saves_and_draws(command, tmp_path):
    pytest.importorskip("matplotlib")
    code, out, _ = command("demo")
    assert code == 0
    for word in ("random CMDP", "one server", "4.4624", "0.2427", "max-min"):
        assert word in out
    assert (tmp_path / "demo" / "region.png").read_bytes().startswith(b"\x89PNG")
    assert arnpg.load_model(tmp_path / "demo" / "two_class_queue.npz").states == 81


def test_without_matplotlib_it_says_how_to_get_it(command, monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    code, out, _ = command("demo", "--out", "elsewhere")
    assert code == 0
    assert "arnpg[plot]" in out


def test_a_folder_that_cannot_be_made(command, tmp_path):
    (tmp_path / "file").write_text("")
    assert command("demo", "--out", "file/below")[0] == 5
