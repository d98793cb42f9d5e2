"""``arnpg resume RUN``: who continues what."""

import pytest

import arnpg.cli.resume as resume
from arnpg.cli import main
from arnpg.runs.folder import RunFolder


@pytest.fixture
def command(capsys):
    def run(*words):
        code = main(["resume", *map(str, words)])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def folder(tmp_path):
    RunFolder.create(tmp_path / "run", "test", {"steps": 3}).close()
    return tmp_path / "run"


def test_the_function_of_the_kind_is_called(command, folder, monkeypatch):
    seen = []

    def go_on(opened, *, resume, quiet):
        seen.append((opened.config, resume, quiet))
        return 0

    monkeypatch.setattr(resume, "CONTINUATIONS", {})
    resume.register("test", go_on)
    assert command(folder)[0] == 0
    assert command(folder, "--auto", "--quiet")[0] == 0
    assert seen == [({"steps": 3}, "strict", False), ({"steps": 3}, "auto", True)]


def test_force_is_handed_on(command, folder, monkeypatch):
    seen = []
    monkeypatch.setitem(resume.CONTINUATIONS, "test", lambda folder, **given: seen.append(given) or 0)
    assert command(folder, "--force")[0] == 0
    assert seen == [{"resume": "strict", "quiet": False, "force": True}]


def test_by_name(command, folder, monkeypatch):
    monkeypatch.setitem(resume.CONTINUATIONS, "test", "no.such.module:resume")
    code, _, errors = command(folder)
    assert code == 2
    assert "which continues runs of kind 'test'" in errors


def test_refusals(command, folder, tmp_path):
    assert command() == (2, "", "arnpg: which run? Give the path of its folder.\nTry `arnpg resume --help`.\n")
    code, _, errors = command(folder)
    assert code == 2
    assert "no command continues it" in errors
    code, _, errors = command(tmp_path)
    assert code == 5
    assert "not the folder of a run" in errors
    code, _, errors = command(tmp_path / "none")
    assert code == 5
    assert command("--help")[0] == 0


def test_finished_and_in_use(command, folder, monkeypatch):
    monkeypatch.setitem(resume.CONTINUATIONS, "test", lambda folder, **_: 0)
    with RunFolder.enter(folder, "test", {"steps": 3}) as opened:
        code, _, errors = command(folder)
        assert code == 5
        assert "in use by process" in errors
        opened.finish({})
    code, out, _ = command(folder)
    assert code == 0
    assert "is finished; there is nothing to resume" in out
