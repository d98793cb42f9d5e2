"""Trials: the same bits as the macro loop, computed once, and what happens when the disk does not play along."""

import errno
import json
import os

import equinox as eqx
import jax
import numpy as np
import pytest
import victim
from agreement import first_row, is_key, same

import arnpg.loop as loop_module
from arnpg import SettingsError
from arnpg.errors import StorageError
from arnpg.loop import Watch, run, run_batch
from arnpg.runs import files
from arnpg.runs.metrics import read_metrics
from arnpg.runs.trial import Every, run_trial

OFTEN = Every(steps=1)


class Crash(BaseException):
    """The process is gone."""


@pytest.fixture
def short_chunks(monkeypatch):
    """Chunks of at most seven steps."""
    monkeypatch.setattr(loop_module, "CAPACITY", 7)


class CrashAt:
    """A logger that ends the process at a step."""

    def __init__(self, step):
        self.step = step

    def start(self, config):
        pass

    def log(self, step, row):
        if step >= self.step:
            raise Crash

    def close(self):
        pass


def interrupted(folder, step, *arguments, **options):
    with pytest.raises(Crash):
        run_trial(folder, *arguments, loggers=[CrashAt(step)], checkpoint_every=OFTEN, **options)


def test_equals_the_macro_loop(tmp_path, tiny, watch):
    same(run_trial(tmp_path / "a", tiny, 30, watch=watch), run(tiny, 30, watch=watch))
    same(run_trial(tmp_path / "b", tiny, 30), run(tiny, 30))
    batch, keys = [tiny, tiny, tiny], jax.random.split(jax.random.key(1), 3)
    same(run_trial(tmp_path / "c", batch, 30, keys=keys, watch=watch), run_batch(batch, 30, keys=keys, watch=watch))


@pytest.mark.usefixtures("short_chunks")
@pytest.mark.parametrize("batch", [False, True])
def test_resumes_bit_by_bit(tmp_path, tiny, watch, batch, said):
    algorithms = [tiny, tiny] if batch else tiny
    whole = (run_batch if batch else run)(algorithms, 50, watch=watch)
    for step in (1, 20, 36):
        interrupted(tmp_path / "run", step, algorithms, 50, watch=watch)
    found = run_trial(tmp_path / "run", algorithms, 50, watch=watch, progress=said)
    same(found, whole)
    assert said.fractions[0] == pytest.approx(35 / 50)
    assert read_metrics(tmp_path / "run" / "metrics.jsonl")["step"].tolist() == list(range(1, 51))
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "finished"
    assert summary["steps"] == 50


@pytest.mark.usefixtures("short_chunks")
def test_resumes_a_sampled_run(tmp_path):
    """Its random key is part of the work that the carry holds."""
    algorithm = victim.algorithms(batch=False, sampled=True)
    for step in (9, 16):
        interrupted(tmp_path / "run", step, algorithm, 25, keys=jax.random.key(2))
    found = run_trial(tmp_path / "run", algorithm, 25, keys=jax.random.key(2))
    assert any(is_key(leaf) for leaf in jax.tree.leaves(found.carry))
    same(found, run(algorithm, 25, key=jax.random.key(2)))


def test_is_computed_once(tmp_path, tiny, watch, monkeypatch):
    first = run_trial(tmp_path / "run", tiny, 30, watch=watch)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    monkeypatch.setattr("arnpg.runs.job.run", None)
    same(run_trial(tmp_path / "run", tiny, 30, watch=watch), first)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")} == before


def test_a_summary_that_was_not_reached_is_written_later(tmp_path, tiny):
    first = run_trial(tmp_path / "run", tiny, 30)
    (tmp_path / "run" / "summary.json").unlink()
    same(run_trial(tmp_path / "run", tiny, 30), first)
    assert (tmp_path / "run" / "summary.json").exists()


def test_another_run_is_refused(tmp_path, tiny):
    run_trial(tmp_path / "run", tiny, 30)
    for other, steps, options in (
        (tiny, 31, {}),
        (tiny, 30, {"keys": jax.random.key(7)}),
        ([tiny], 30, {}),
        (eqx.tree_at(lambda tree: tree.inner.step_size, tiny, 0.6), 30, {}),
        (eqx.tree_at(lambda tree: tree.inner.rewards, tiny, tiny.inner.rewards + 1e-15), 30, {}),
        (tiny, 30, {"watch": Watch(each=first_row)}),
    ):
        with pytest.raises(StorageError, match="another configuration"):
            run_trial(tmp_path / "run", other, steps, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be a whole number"),
        ({"steps": True}, "steps must be a whole number"),
        ({"resume": "maybe"}, "resume must be 'strict' or 'auto'"),
        ({"algorithms": []}, "at least one"),
        ({"batch": 2, "keys": 3}, "one key for each of the 2"),
    ],
)
def test_nonsense_is_refused_before_the_folder_is_made(tmp_path, tiny, options, message):
    algorithms = [tiny] * options.pop("batch") if "batch" in options else options.pop("algorithms", tiny)
    if "keys" in options:
        options["keys"] = jax.random.split(jax.random.key(0), options["keys"])
    steps = options.pop("steps", 10)
    with pytest.raises(SettingsError, match=message):
        run_trial(tmp_path / "run", algorithms, steps, **options)
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("short_chunks")
@pytest.mark.parametrize("damage", ["checkpoint", "trace"])
def test_damage_needs_auto(tmp_path, tiny, watch, said, damage):
    interrupted(tmp_path / "run", 30, tiny, 50, watch=watch)
    newest = max((tmp_path / "run" / "checkpoints").glob("*.npz"))
    path = newest if damage == "checkpoint" else tmp_path / "run" / "trace.bin"
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if damage == "checkpoint" else -3] ^= 1
    path.write_bytes(data)
    with pytest.raises(StorageError, match=rf"{path.name} is damaged.*With --auto"):
        run_trial(tmp_path / "run", tiny, 50, watch=watch)
    found = run_trial(tmp_path / "run", tiny, 50, watch=watch, resume="auto", progress=said)
    same(found, run(tiny, 50, watch=watch))
    assert f"{path.name} is damaged" in said.lines[0]
    assert "instead" in said.lines[0]


@pytest.mark.usefixtures("short_chunks")
def test_a_truncated_trace_is_noticed(tmp_path, tiny):
    interrupted(tmp_path / "run", 30, tiny, 50)
    path = tmp_path / "run" / "trace.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match="trace.bin is truncated: 1 bytes are missing"):
        run_trial(tmp_path / "run", tiny, 50)
    path.unlink()
    with pytest.raises(StorageError, match="trace.bin cannot be read"):
        run_trial(tmp_path / "run", tiny, 50)


def fill_disk(monkeypatch, module, times):
    """The next ``times`` writes of ``module`` end half way, as on a full disk."""
    write, left = files.write_all, [times]

    def half(handle, data):
        if left[0] and len(data) > 200:
            left[0] -= 1
            write(handle, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(handle, data)

    monkeypatch.setattr(f"arnpg.runs.{module}.write_all", half)


@pytest.mark.usefixtures("short_chunks")
@pytest.mark.parametrize("module", ["files", "trace"])
def test_disk_full_once(tmp_path, tiny, watch, said, monkeypatch, module):
    """The checkpoint before stays, the temporary file goes, the run goes on, the result is right."""
    interrupted(tmp_path / "run", 15, tiny, 50, watch=watch)
    kept = sorted((tmp_path / "run" / "checkpoints").glob("*"))
    fill_disk(monkeypatch, module, 1)
    seen = []
    said.say = lambda text: seen.append((text, sorted((tmp_path / "run" / "checkpoints").iterdir())))
    found = run_trial(tmp_path / "run", tiny, 50, watch=watch, progress=said, checkpoint_every=OFTEN)
    same(found, run(tiny, 50, watch=watch))
    (text, there), *rest = seen
    assert "checkpoint failed, the run goes on" in text
    assert "the disk is full" in text
    assert there == kept
    assert not rest


@pytest.mark.usefixtures("short_chunks")
def test_disk_full_twice_stops_and_can_be_resumed(tmp_path, tiny, said, monkeypatch):
    interrupted(tmp_path / "run", 15, tiny, 50)
    with monkeypatch.context() as patch:
        fill_disk(patch, "files", 10)
        with pytest.raises(StorageError, match="the disk is full; free some space"):
            run_trial(tmp_path / "run", tiny, 50, progress=said, checkpoint_every=OFTEN)
    assert len(said.lines) == 1
    assert not list((tmp_path / "run").rglob(".*.tmp"))
    same(run_trial(tmp_path / "run", tiny, 50), run(tiny, 50))


@pytest.mark.usefixtures("short_chunks")
def test_other_versions_are_reported(tmp_path, tiny, said, monkeypatch):
    interrupted(tmp_path / "run", 15, tiny, 50)
    versions = {"arnpg": "0.0.1"}
    monkeypatch.setattr("arnpg.runs.folder._versions", lambda: versions)
    run_trial(tmp_path / "run", tiny, 50, progress=said)
    assert "began with other versions: arnpg" in said.lines[0]


def test_without_a_reporter_warnings_are_warnings(tmp_path, tiny, monkeypatch, short_chunks):
    fill_disk(monkeypatch, "trace", 1)
    with pytest.warns(UserWarning, match="checkpoint failed"):
        run_trial(tmp_path / "run", tiny, 50, checkpoint_every=OFTEN)


def test_nothing_is_left_behind_in_the_process(tmp_path, tiny):
    import signal
    import threading

    before = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), threading.active_count())
    state, x64 = np.random.get_state()[1].tobytes(), jax.config.jax_enable_x64
    run_trial(tmp_path / "run", tiny, 30)
    after = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), threading.active_count())
    assert after == before
    assert np.random.get_state()[1].tobytes() == state
    assert jax.config.jax_enable_x64 == x64


def test_in_a_thread(tmp_path, tiny):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        same(pool.submit(run_trial, tmp_path / "run", tiny, 30).result(), run(tiny, 30))
