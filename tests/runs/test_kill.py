"""Whatever ends the process, the result is the same in every bit."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest
import victim
from agreement import same

VICTIM = [sys.executable, victim.__file__]
STEPS = 40_000  # about 80 checkpoints


@pytest.fixture(scope="module", autouse=True)
def _compiled_once(tmp_path_factory):
    """What one victim has compiled, the next two dozen need not."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("xla")))
        environment.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        yield


def start(folder, *words, steps=STEPS):
    """The victim, when its first chunk is done."""
    up = pathlib.Path(f"{folder}.up")
    up.unlink(missing_ok=True)
    process = subprocess.Popen([*VICTIM, str(folder), str(steps), *words], stderr=subprocess.PIPE, encoding="utf-8")
    deadline = time.monotonic() + 90
    while not up.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    return process


def finish(process):
    """Its exit code and what it said."""
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The results of runs that nothing interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    return {batch: victim.run(folder / f"batch-{batch}", STEPS, batch) for batch in (False, True)}


@pytest.mark.slow
@pytest.mark.parametrize("batch", [False, True])
def test_ten_kills_one_after_another(tmp_path, whole, batch):
    """SIGKILL ten times, most of them in the middle of a save; then the run is finished here."""
    folder, draws, in_save = tmp_path / "run", random.Random(batch), 0
    for number in range(10):
        slow = "slow" if number % 5 else "quick"
        process = start(folder, slow, "batch" if batch else "single")
        time.sleep(draws.uniform(0, 0.15 if slow == "slow" else 0.02))
        assert process.poll() is None, finish(process)[1]
        process.kill()
        finish(process)
        in_save += pathlib.Path(f"{folder}.saving").exists()
        pathlib.Path(f"{folder}.saving").unlink(missing_ok=True)
    assert in_save >= 3
    same(victim.run(folder, STEPS, batch), whole[batch])
    assert not list(folder.rglob(".*.tmp"))


@pytest.mark.parametrize(
    ("number", "words", "code"),
    [
        (signal.SIGINT, ("cli",), 130),
        (signal.SIGTERM, ("cli",), 143),
        (signal.SIGTERM, ("plain",), -signal.SIGTERM),
    ],
    ids=["SIGINT", "SIGTERM", "SIGTERM in a plain program"],
)
def test_a_signal_saves_and_ends(tmp_path, whole, number, words, code):
    folder = tmp_path / "run"
    process = start(folder, "slow", *words)
    began = time.monotonic()
    process.send_signal(number)
    found, errors = finish(process)
    assert time.monotonic() - began < 2.0
    assert found == code
    assert "saved; the same command continues it" in errors
    assert "Traceback" not in errors
    same(victim.run(folder, STEPS), whole[False])


def test_a_second_signal_ends_at_once(tmp_path, whole):
    """In the middle of a save that would take a minute; the checkpoint before it is intact."""
    folder = tmp_path / "run"
    process = start(folder, "slow", "cli")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    code, _ = finish(process)
    assert code in (130, -signal.SIGINT)
    same(victim.run(folder, STEPS), whole[False])


def test_a_second_process_learns_the_pid_of_the_first(tmp_path):
    folder = tmp_path / "run"
    process = start(folder, "slow")
    second = subprocess.run([*VICTIM, str(folder), str(STEPS), "cli"], capture_output=True, encoding="utf-8")
    process.kill()
    finish(process)
    assert second.returncode == 5, second.stderr
    assert f"is in use by process {process.pid}" in second.stderr
    assert "Traceback" not in second.stderr


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP here")
def test_nohup_is_respected(tmp_path):
    """A signal that the program ignores stays ignored."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        victim.run(tmp_path / "run", 600)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
