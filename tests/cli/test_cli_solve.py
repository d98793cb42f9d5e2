import json

import numpy as np
import pytest

import arnpg


def test_a_table_with_values_price_and_gap(shell, model):
    ran = shell("solve", model, "--maximize", "throughput", "--at-least", "battery=3.0")
    assert ran.returncode == 0, ran.stderr
    for word in ("maximise throughput subject to battery >= 3", "4.46244", "0.242669", "certified"):
        assert word in ran.stdout
    assert ran.stderr == ""


def test_json_parses_and_agrees_with_the_library(command, model):
    code, out, _ = command("solve", model, "--maximize", "throughput", "--at-least", "battery=3", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["status"] == "certified"
    criterion = arnpg.Constrained(maximize="throughput", at_least={"battery": 3.0})
    expected = arnpg.solve(arnpg.load_model(model), criterion)
    assert found["values"] == pytest.approx(expected.values, rel=1e-12)
    assert found["bound"] - found["objective"] == pytest.approx(found["gap"], abs=1e-12)
    assert found["multipliers"] == pytest.approx({"battery >= 3": 0.242669}, rel=1e-4)


FAIR = arnpg.ProportionalFair
CASES = {
    "--fair": FAIR(),
    "--fair throughput battery=2": FAIR({"throughput": 1.0, "battery": 2.0}),
    "--fair --offset 0.5": FAIR(offset=0.5),
    "--max-min": arnpg.MaxMin(),
    "--max-min throughput=1 battery=2": arnpg.MaxMin({"throughput": 1.0, "battery": 2.0}),
    "--linear throughput=1 battery=-0.2": arnpg.Linear({"throughput": 1.0, "battery": -0.2}),
    "--maximize throughput": arnpg.Constrained(maximize="throughput"),
    "--maximize throughput --at-least battery=3 --at-most throughput=4": arnpg.Constrained(
        "throughput", at_least={"battery": 3.0}, at_most={"throughput": 4.0}
    ),
    "--at-most throughput=3.5 --fair": arnpg.Constrained(FAIR(), at_most={"throughput": 3.5}),
    "--max-min throughput battery --at-least battery=4.2": arnpg.Constrained(
        arnpg.MaxMin({"throughput": 1.0, "battery": 1.0}), at_least={"battery": 4.2}
    ),
    "--fair throughput battery --at-least battery=4.1 --at-least throughput=1": arnpg.Constrained(
        FAIR({"throughput": 1.0, "battery": 1.0}), at_least={"battery": 4.1, "throughput": 1.0}
    ),
}


@pytest.mark.parametrize("flags", CASES)
def test_every_criterion(command, model, flags):
    code, out, err = command("solve", model, *flags.split(), "--json")
    assert code == 0, err
    expected = arnpg.solve(arnpg.load_model(model), CASES[flags])
    assert json.loads(out)["objective"] == pytest.approx(expected.objective, rel=1e-9)


def test_the_model_may_come_last(command, model):
    for flags in (["--fair"], ["--max-min", "throughput"], ["--maximize", "throughput", "--at-least", "battery=3"]):
        assert command("solve", *flags, model)[0] == 0


def test_out_and_plot_are_written(command, model, tmp_path):
    pytest.importorskip("matplotlib")
    code, out, _ = command("solve", model, "--fair", "--out", "my solution.npz", "--plot", "é.png", "--quiet")
    assert code == 0
    assert "my solution.npz" in out
    assert arnpg.load(tmp_path / "my solution.npz").certified
    assert (tmp_path / "é.png").read_bytes().startswith(b"\x89PNG")


def test_a_plain_algorithm_with_settings(command, model):
    flags = ["--fair", "--method", "arnpg-imd", "--set", "step_size=1", "micro_steps=2", "--steps", "5", "--json"]
    code, out, err = command("solve", model, *flags)
    found = json.loads(out)
    assert (code, found["status"], found["steps"]) == (3, "not certified", 5)
    assert "not certified" in err


def test_infeasible(command, model):
    flags = ["solve", model, "--maximize", "throughput", "--at-least", "battery=30"]
    code, out, err = command(*flags)
    assert code == 3
    assert "no policy meets the constraints" in err
    assert "battery" in out
    code, out, _ = command(*flags, "--json")
    found = json.loads(out)
    assert code == 3
    assert found["status"] == "infeasible"
    assert found["shortfall"] > 0
    assert found["violations"] == pytest.approx([30 - 4.525027], abs=1e-4)


WRONG = {
    "": "one of --maximize NAME",
    "--maximize": "expected one argument",
    "--maximize speed": "'speed'.*throughput, battery",
    "--maximise throughput": "perhaps you meant --maximize",
    "--maximize throughput --at-lest battery=3": "perhaps you meant --at-least",
    "--maximize throughput --at-least battery": "name=value.*'battery'",
    "--maximize throughput --at-least battery=x": "must be a number, got 'x'",
    "--maximize throughput --at-least battery=3,0": "must be a number, got '3,0'",
    "--maximize throughput --at-least battery=nan": "must be a finite number",
    "--maximize throughput --at-least =3": "name=value",
    "--maximize throughput --at-least batery=3": "'batery'.*throughput, battery",
    "--maximize throughput --at-least battery=3 --at-least battery=4": "twice",
    "--maximize throughput --fair": "got --maximize and --fair",
    "--max-min --offset 1": "--offset goes with --fair",
    "--fair --offset -1": "offset must be",
    "--fair throughput=0": "must be > 0",
    "--fair throughput=-1": "must be > 0",
    "--max-min throughput=0": "must be > 0",
    "--linear": "expected at least one argument",
    "--linear throughput": "name=value",
    "--fair --gap 0": "gap must be in",
    "--fair --gap tiny": "--gap must be a number",
    "--fair --gap nan": "gap must be in",
    "--fair --steps 0": "steps must be a whole number",
    "--fair --steps 1.5": "--steps must be a whole number",
    "--fair --time-limit 0": "time_limit must be > 0",
    "--fair --time-limit soon": "--time-limit must be a number",
    "--fair --method arnpg-edp": "perhaps you meant .*arnpg-epd",
    "--fair --method arnpg-epd": "arnpg-imd",
    "--fair --set step_size=1": "not a setting of 'arnpg'",
    "--fair --method arnpg-imd --set stepsize=1": "not a setting of 'arnpg-imd'; it has step_size",
    "--fair --method arnpg-imd --set step_size=0": "step_size must be a finite number > 0",
    "--fair --method arnpg-imd --set micro_steps=1.5": "micro_steps must be a whole number",
    "--fair --method arnpg-imd --set step_size=fast": "must be a number, got 'fast'",
    "--fair --plot picture.xyz": "--plot must end with",
    "--maximize throughput extra.npz": "unexpected argument 'extra.npz'",
}


@pytest.mark.parametrize("flags", WRONG)
def test_wrong_flags_are_bad_input(command, model, flags):
    import re

    code, out, err = command("solve", model, *flags.split())
    assert code == 2, err
    assert out == ""
    assert err.startswith("arnpg: ")
    assert "Traceback" not in err
    assert re.search(WRONG[flags], err, re.S), err


@pytest.mark.parametrize("flag", ["--out", "--plot"])
def test_a_place_that_cannot_be_written_is_refused_before_the_work(command, model, flag, tmp_path):
    for target in ("missing/folder/s.png", tmp_path):
        code, _, err = command("solve", model, "--fair", flag, target)
        assert code == 5
        assert flag in err


def test_no_model_no_file_no_folder(command, tmp_path):
    assert "which model" in command("solve", "--fair")[2]
    for path in ("missing.npz", tmp_path):
        code, _, err = command("solve", path, "--fair")
        assert code == 2
        assert str(path) in err


def damaged(kind, path, source):
    whole = source.read_bytes()
    good = dict(np.load(source))
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("transitions = 1")
    elif kind == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif kind == "objects":
        np.savez(path, transitions=np.array([{"a": 1}], dtype=object), rewards=np.zeros(1), discount=0.9)
    elif kind == "missing entry":
        np.savez(path, transitions=good["transitions"], rewards=good["rewards"])
    elif kind == "mistyped entry":
        np.savez(path, transition=good["transitions"], rewards=good["rewards"], discount=0.9)
    elif kind == "bad row":
        np.savez(path, transitions=good["transitions"] * 0.9, rewards=good["rewards"], discount=0.9)
    elif kind == "not a number":
        np.savez(path, transitions=good["transitions"] * np.nan, rewards=good["rewards"], discount=0.9)
    elif kind == "bad discount":
        np.savez(path, transitions=good["transitions"], rewards=good["rewards"], discount=1.0)
    elif kind == "too few names":
        np.savez(path, transitions=good["transitions"], rewards=good["rewards"], discount=0.9, names=["a"])


KINDS = [
    "empty", "text", "truncated", "objects", "missing entry", "mistyped entry", "bad row", "not a number",
    "bad discount", "too few names",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", ["solve", "describe"])
def test_a_bad_file_is_bad_input(command, model, tmp_path, kind, verb):
    from pathlib import Path

    path = tmp_path / "bad.npz"
    damaged(kind, path, Path(model))
    code, out, err = command(verb, path, *(["--fair"] if verb == "solve" else []))
    assert (code, out) == (2, "")
    assert "bad.npz" in err
    assert "Traceback" not in err


def test_methods_named_in_the_help_are_those_of_the_library():
    from arnpg.cli.solve import METHODS
    from arnpg.recipes.tabular import METHODS as KNOWN

    assert set(METHODS) == {"arnpg", *KNOWN}
