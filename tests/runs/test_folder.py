"""Run folders: who owns them, what they refuse, and that they refuse before any work."""

import errno
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from arnpg.errors import StorageError
from arnpg.runs import lock
from arnpg.runs.folder import RunFolder
from arnpg.runs.lock import FolderLock
from arnpg.runs.stages import FolderStages

CONFIG = {"step_size": 0.1, "sizes": [1, 2]}


def test_a_new_folder_says_what_made_it(tmp_path):
    with RunFolder.create(tmp_path / "run", "trial", CONFIG, seed=3, command=["arnpg", "x"]) as folder:
        assert folder.checkpoints.is_dir()
        assert folder.plots.is_dir()
    about = json.loads((tmp_path / "run" / "config.json").read_text())
    assert about["schema"] == 1
    assert (about["kind"], about["config"], about["seed"], about["command"]) == ("trial", CONFIG, 3, ["arnpg", "x"])
    assert set(about["versions"]) >= {"arnpg", "jax", "numpy"}
    assert about["python"]
    assert about["platform"]
    assert len(about["config_hash"]) == 64
    assert RunFolder.open(tmp_path / "run").config == CONFIG


def test_what_is_there_is_never_overwritten(tmp_path):
    path = tmp_path / "run"
    RunFolder.create(path, "trial", CONFIG).close()
    with pytest.raises(StorageError, match="unfinished; `arnpg resume .*run` continues it"):
        RunFolder.create(path, "trial", CONFIG)
    with pytest.raises(StorageError, match="another configuration"):
        RunFolder.create(path, "trial", {"step_size": 0.2})
    with pytest.raises(StorageError, match="another configuration"):
        RunFolder.enter(path, "other kind", CONFIG)
    with RunFolder.enter(path, "trial", CONFIG) as folder:
        folder.finish({"status": "finished", "value": 0.1})
    with pytest.raises(StorageError, match="finished run, which is never overwritten"):
        RunFolder.create(path, "trial", CONFIG)
    again = RunFolder.enter(path, "trial", CONFIG)
    assert again.finished
    assert again.summary() == {"status": "finished", "value": 0.1}


def test_somebody_elses_folder(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(StorageError, match=r"holds other files, such as thesis\.tex"):
        RunFolder.create(tmp_path, "trial", CONFIG)
    with pytest.raises(StorageError, match="not the folder of a run"):
        RunFolder.open(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda about: about | {"schema": 9}, "has schema 9; update arnpg"),
        (lambda about: about | {"config": {"step_size": 0.3}}, "was edited: its hash differs"),
        (lambda about: {"schema": 1}, "lacks kind"),
        (lambda about: [], "not valid JSON"),
    ],
)
def test_edited_config(tmp_path, change, message):
    RunFolder.create(tmp_path / "run", "trial", CONFIG).close()
    path = tmp_path / "run" / "config.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(StorageError, match=message):
        RunFolder.open(tmp_path / "run")


def test_torn_config(tmp_path):
    RunFolder.create(tmp_path / "run", "trial", CONFIG).close()
    path = tmp_path / "run" / "config.json"
    path.write_text(path.read_text()[:50])
    with pytest.raises(StorageError, match="config.json is not valid JSON"):
        RunFolder.enter(tmp_path / "run", "trial", CONFIG)


def test_two_at_once_and_after(tmp_path):
    with RunFolder.create(tmp_path / "run", "trial", CONFIG):
        with pytest.raises(StorageError, match=f"in use by process {os.getpid()}; wait until it ends"):
            RunFolder.enter(tmp_path / "run", "trial", CONFIG)
        RunFolder.open(tmp_path / "run")
    RunFolder.enter(tmp_path / "run", "trial", CONFIG).close()


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from arnpg.runs.lock import FolderLock;"
        "FolderLock(Path(sys.argv[1])).acquire(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / ".lock")], check=False)
    assert json.loads((tmp_path / ".lock").read_text())["pid"]
    FolderLock(tmp_path / ".lock").acquire()


@pytest.mark.parametrize(
    ("owner", "free"),
    [
        ({"pid": os.getpid(), "host": None}, False),
        ({"pid": 2**22 + 1, "host": None}, True),
        ({"pid": 2**22 + 1, "host": "elsewhere"}, False),
        ("torn", True),
    ],
)
def test_without_locks_of_the_file_system_the_pid_decides(tmp_path, monkeypatch, owner, free):
    monkeypatch.setattr(lock, "fcntl", None)
    path = tmp_path / ".lock"
    if isinstance(owner, dict):
        owner = json.dumps({"pid": owner["pid"], "host": owner["host"] or lock.socket.gethostname()})
    path.write_text(owner)
    if free:
        FolderLock(path).acquire()
    else:
        with pytest.raises(StorageError, match="in use by process"):
            FolderLock(path).acquire()


def test_odd_names_are_fine(tmp_path):
    for name in ("with space", "Übung-電池-🙂", "a" * 200, "-x", "%s{}"):
        with RunFolder.create(tmp_path / name, "trial", CONFIG) as folder:
            assert (folder.path / "config.json").exists()


def test_places_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone" / "run")
    cases = {
        tmp_path / "missing" / "mount" / "run": "parent folder does not exist",
        tmp_path / "file": "a file of that name is in the way",
        tmp_path / "file" / "run": "a part of the path is a file",
        tmp_path / "loop": "symbolic links form a loop",
        tmp_path / "loop" / "run": "symbolic links form a loop",
        tmp_path / "nowhere": "does not exist",
        tmp_path / ("a" * 300): "path is too long",
        tmp_path / "nul\0byte": "the path is not valid",
    }
    for path, message in cases.items():
        with pytest.raises(StorageError, match=message):
            RunFolder.create(path, "trial", CONFIG)
    with RunFolder.create(tmp_path / "missing" / "mount" / "run", "trial", CONFIG, parents=True):
        pass


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no /proc here")
def test_read_only_place():
    with pytest.raises(StorageError, match="/proc/.*cannot be written"):
        RunFolder.create("/proc/run", "trial", CONFIG)


def test_read_only_folder_is_noticed_by_the_probe(tmp_path, monkeypatch):
    def refuse(handle, data):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("arnpg.runs.folder.write_all", refuse)
    with pytest.raises(StorageError, match="the file system is read-only"):
        RunFolder.create(tmp_path / "run", "trial", CONFIG)
    assert not list((tmp_path / "run").iterdir())


def test_stages_are_computed_once(tmp_path, said):
    calls = []

    def compute():
        calls.append(1)
        return {"gap": np.array([0.1, np.nan])}

    with RunFolder.create(tmp_path / "run", "reproduce", CONFIG) as folder:
        stages = FolderStages(folder, said)
        first, second = stages.stage("exact", compute), stages.stage("exact", compute)
        assert calls == [1]
        assert first["gap"].tobytes() == second["gap"].tobytes()
        path = folder.path / "stages" / "exact.npz"
        path.write_bytes(path.read_bytes()[:-5])
        third = stages.stage("exact", compute)
    assert third["gap"].tobytes() == first["gap"].tobytes()
    assert len(calls) == 2
    assert "truncated" in said.lines[0]
    assert "computed again" in said.lines[0]
