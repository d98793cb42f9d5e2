"""A long solve goes on where it was cut off, and a file can cost time but never truth."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sparse_models import garnet

import arnpg
from arnpg.archive import write_archive
from arnpg.errors import StorageError
from arnpg.examples import hospital_ward, multiclass_queue

KILLED = """
import os, signal, sys
import arnpg
from arnpg.examples import multiclass_queue
from arnpg.tabular import points_file

points_file.LEAST_SECONDS, points_file.SHARE = -1.0, 0

def kill(seen):
    if seen.step == 4:
        os.kill(os.getpid(), signal.SIGKILL)

arnpg.solve(multiclass_queue(343), arnpg.ProportionalFair(SHARED), progress=kill, checkpoint=sys.argv[1])
"""
SHARED = {"served 1": 1.0, "served 2": 1.0, "served 3": 1.0}


def test_a_killed_solve_goes_on(tmp_path: Path) -> None:
    """``kill -9`` after four rounds; the rest takes fewer rounds than the whole, and ends as well."""
    file = tmp_path / "queue.npz"
    ended = subprocess.run([sys.executable, "-c", KILLED.replace("SHARED", repr(SHARED)), str(file)], check=False)
    assert ended.returncode == -signal.SIGKILL
    mdp, criterion = multiclass_queue(343), arnpg.ProportionalFair(SHARED)
    whole = arnpg.solve(mdp, criterion)
    rest = arnpg.solve(mdp, criterion, checkpoint=file)
    assert rest.certified
    assert any("went on from" in note for note in rest.notes)
    assert rest.trace.objective[0] > whole.trace.objective[0]
    assert len(rest.trace) < len(whole.trace)
    assert abs(rest.objective - whole.objective) <= max(rest.gap, whole.gap)
    assert len(arnpg.solve(mdp, criterion, checkpoint=file).trace) <= 3


def test_an_error_on_the_way_leaves_the_file(tmp_path: Path) -> None:
    mdp = hospital_ward(400)
    with pytest.raises(ZeroDivisionError):
        arnpg.solve(mdp, arnpg.MaxMin(), progress=lambda seen: 1 // (3 - seen.step), checkpoint=tmp_path / "w.npz")
    assert any("went on" in note for note in arnpg.solve(mdp, arnpg.MaxMin(), checkpoint=tmp_path / "w.npz").notes)


def test_policies_from_anywhere_change_nothing_but_the_time(tmp_path: Path) -> None:
    mdp = arnpg.MDP.from_slots(*garnet(300, 3, 4, 0), discount=0.9)
    expected = arnpg.solve(mdp, arnpg.MaxMin())
    policies = np.random.default_rng(0).integers(0, 3, (5, 300)).astype(np.uint8)
    write_archive(tmp_path / "p.npz", "checkpoint", {}, {"policies": policies})
    found = arnpg.solve(mdp, arnpg.MaxMin(), checkpoint=tmp_path / "p.npz")
    assert found.certified
    assert abs(found.objective - expected.objective) <= max(found.gap, expected.gap)


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        (np.zeros((2, 299), np.uint8), "belongs to another model, with 299 states and not 300"),
        (np.full((2, 300), 3, np.uint8), "or more actions than 3"),
        (np.full((2, 300), 2, np.uint8), "takes actions that are not allowed here"),
        (np.zeros((2, 300)), "holds no policies"),
        (None, "holds no policies"),
    ],
)
def test_files_of_other_models_are_refused(tmp_path: Path, policies: np.ndarray | None, message: str) -> None:
    allowed = np.ones((300, 3), bool)
    allowed[7, 2] = False
    mdp = arnpg.MDP.from_slots(*garnet(300, 3, 4, 0), discount=0.9, allowed=allowed)
    write_archive(tmp_path / "p.npz", "checkpoint", {}, {} if policies is None else {"policies": policies})
    with pytest.raises(arnpg.ModelError, match=message):
        arnpg.solve(mdp, arnpg.MaxMin(), checkpoint=tmp_path / "p.npz")


def test_a_file_that_is_no_checkpoint_and_a_plain_algorithm_are_refused(tmp_path: Path) -> None:
    mdp = hospital_ward(100)
    arnpg.save_model(mdp, tmp_path / "m.npz")
    with pytest.raises(arnpg.ModelError, match="holds a model, not a checkpoint"):
        arnpg.solve(mdp, arnpg.MaxMin(), checkpoint=tmp_path / "m.npz")
    with pytest.raises(arnpg.SettingsError, match="checkpoint goes with the default method, got method='arnpg-omda'"):
        arnpg.solve(mdp, arnpg.MaxMin(), method="arnpg-omda", checkpoint=tmp_path / "n.npz")
    with pytest.raises(StorageError, match="its folder does not exist or cannot be written to; make it first"):
        arnpg.solve(mdp, arnpg.MaxMin(), checkpoint=tmp_path / "none" / "m.npz")
    with pytest.raises(arnpg.SettingsError, match="checkpoint must be a path, got 5"):
        arnpg.solve(mdp, arnpg.MaxMin(), checkpoint=5)
