"""Environments that break, and processes that are killed: what is raised, what is dropped, what is begun anew."""

import functools
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from host_environments import Fragile, Misbehaving, OddOnes, TwoRewards, Walk

from arnpg.envs import make_host
from arnpg.envs.faults import fresh_seed
from arnpg.envs.host import environment_seeds
from arnpg.errors import EnvironmentFault, SettingsError

ACTIONS = np.array([[0.1], [0.2], [0.3]])


def play(batch, steps):
    return [batch.step(ACTIONS[: batch.count]) for _ in range(steps)]


def made_afresh(fault, odd, on_fault="drop"):
    OddOnes.made = 0
    return make_host(functools.partial(OddOnes, fault, odd), time_limit=6, on_fault=on_fault)


@pytest.mark.parametrize("fault", ["raises", "nan", "cost"])
def test_a_dropped_episode_is_marked_counted_and_begun_anew(fault):
    host = made_afresh(fault, odd={2})  # the second of three: one was made to be looked at
    with host.open(3, 0) as batch, make_host(Walk, time_limit=6).open(3, 0) as sound:
        starts = batch.reset()
        np.testing.assert_array_equal(sound.reset(), starts)
        pairs = [(batch.step(ACTIONS), sound.step(ACTIONS)) for _ in range(12)]
    for k, (ours, theirs) in enumerate(pairs):
        for a, b in zip(ours[:-1], theirs[:-1], strict=True):
            np.testing.assert_array_equal(a[[0, 2]], b[[0, 2]])  # nobody else notices
        assert (ours.dropped is not None) == (k == 2)
    lost, before = pairs[2][0], pairs[1][0]
    assert lost.dropped.tolist() == [False, True, False]
    np.testing.assert_array_equal(lost.rewards[1], 0)
    np.testing.assert_array_equal(lost.next_observations[1], before.observations[1])
    assert (lost.terminated[1], lost.truncated[1]) == (False, True)
    assert lost.observations[1, 1] == 0  # a fresh episode
    assert [(x.environment, x.step) for x in batch.faults] == [(1, 3)]
    assert np.isfinite(np.concatenate([ours.observations for ours, _ in pairs])).all()


def test_stop_is_the_default():
    host = made_afresh("raises", odd={2}, on_fault="stop")
    with host.open(3, 0) as batch:
        batch.reset()
        batch.step(ACTIONS)
        batch.step(ACTIONS)
        with pytest.raises(EnvironmentFault, match="environment 1, seed .*, step 3 .*the simulator fell over"):
            batch.step(ACTIONS)


def test_an_environment_that_always_breaks_is_given_up():
    with make_host(functools.partial(Misbehaving, "nan reward"), time_limit=9, on_fault="drop").open(2, 0) as batch:
        batch.reset()
        with pytest.raises(EnvironmentFault, match="the reward is nan.*This is the 4th episode lost in a row, and 3"):
            play(batch, 30)
        assert len(batch.faults) >= 4


def test_three_in_a_row_are_forgiven_after_a_proper_end():
    host = made_afresh("raises", odd={1, 2, 3, 5, 6, 7})  # after three made in vain, one plays on until it is odd again
    with host.open(1, 0) as batch:
        batch.reset()
        steps = [batch.step(ACTIONS[:1]) for _ in range(20)]
    assert sum(step.dropped is not None for step in steps) == len(batch.faults) == 3


def test_workers_play_what_one_process_plays():
    make = functools.partial(TwoRewards, noise=0.5)
    hosts = [make_host(make, time_limit=5, workers=workers) for workers in (0, 2)]
    actions = np.random.default_rng(0).uniform(-1, 1, (14, 3, 1))
    found = []
    for host in hosts:
        with host.open(3, 4) as batch:
            rows = [batch.reset(), *(batch.step(a) for a in actions), batch.reset(), batch.reset(seed=9)]
        found.append(rows)
    for one, other in zip(*found, strict=True):
        for a, b in zip(*(x[:-1] if isinstance(x, tuple) else [x] for x in (one, other)), strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("die", "its process was killed by SIGKILL, perhaps for memory"),
        ("exit", "its process ended with exit code 7"),
        ("hang", "its process did not answer within 2 s, and was killed"),
    ],
)
def test_a_process_that_dies_or_hangs_is_begun_anew_with_another_seed(order, words, tmp_path):
    host = make_host(functools.partial(Fragile, tmp_path), time_limit=6, workers=2, step_timeout=2.0)
    sound = make_host(Walk, time_limit=6).open(3, 0)
    with host.open(3, 0) as batch, sound:
        np.testing.assert_array_equal(batch.reset(), sound.reset())
        steps = [batch.step(ACTIONS) for _ in range(2)]
        (tmp_path / "order").write_text(order)
        steps += [batch.step(ACTIONS) for _ in range(8)]
        others = [sound.step(ACTIONS) for _ in range(10)]
    lost = steps[2].dropped
    assert lost.tolist() in ([True, True, False], [False, False, True])  # whoever read the order first
    for ours, theirs in zip(steps, others, strict=True):
        for a, b in zip(ours[:-1], theirs[:-1], strict=True):
            np.testing.assert_array_equal(a[~lost], b[~lost])
    assert [fault.environment for fault in batch.faults] == np.flatnonzero(lost).tolist()
    for fault in batch.faults:
        assert words in str(fault)
        assert (fault.step, fault.seed) == (3, environment_seeds(0, 3)[fault.environment])
        assert fresh_seed(fault.seed, 1) != fault.seed
        np.testing.assert_array_equal(fault.details["episode_actions"], [ACTIONS[fault.environment]] * 3)
    assert (steps[2].observations[lost, 1] == 0).all()


def test_a_process_killed_from_outside(tmp_path):
    with make_host(functools.partial(Fragile, tmp_path), time_limit=6, workers=1).open(2, 0) as batch:
        batch.reset()
        batch.step(ACTIONS[:2])
        os.kill(batch._stepper._workers[0].pid, signal.SIGKILL)
        step = batch.step(ACTIONS[:2])
        assert step.dropped.all()
        np.testing.assert_array_equal(step.rewards, 0)
        assert batch.step(ACTIONS[:2]).dropped is None
    assert len(batch.faults) == 2


def test_a_process_that_always_dies_is_given_up(tmp_path):
    host = make_host(functools.partial(Fragile, tmp_path), time_limit=6, workers=1)
    (tmp_path / "order").write_text("always die")
    with host.open(1, 0) as batch:
        batch.reset()
        with pytest.raises(EnvironmentFault, match="killed by SIGKILL.*the 4th episode lost in a row, and 3"):
            play(batch, 20)


def test_faults_in_workers_are_the_same_faults():
    host = make_host(functools.partial(Misbehaving, "raises", at=3), time_limit=9, workers=1)
    batch = host.open(2, 0)
    batch.reset()
    batch.step(ACTIONS[:2])
    batch.step(ACTIONS[:2])
    with pytest.raises(EnvironmentFault, match="environment 0, seed .*, step 3 .*the simulator fell over") as caught:
        batch.step(ACTIONS[:2])
    assert "the simulator fell over" in str(caught.value.details["traceback"])
    with pytest.raises(SettingsError, match="closed"):
        batch.reset()


@pytest.mark.parametrize("fault", ["raises", "cost is nan"])
def test_dropped_episodes_in_workers(fault):
    host = make_host(functools.partial(Misbehaving, fault, at=5, patience=4), time_limit=9, workers=1, on_fault="drop")
    odd = make_host(functools.partial(Misbehaving, fault, at=3), time_limit=9, workers=1, on_fault="drop")
    with host.open(1, 0) as batch, odd.open(2, 0) as bad:
        batch.reset()
        bad.reset()
        assert all(step.dropped is None for step in play(batch, 9))
        steps = play(bad, 6)
    assert [step.dropped is not None for step in steps] == [False, False, True] * 2
    assert [x.environment for x in bad.faults] == [0, 1] * 2
    assert all("random_state" in x.details for x in bad.faults)


def test_what_cannot_be_sent_to_a_process():
    lock = threading.Lock()
    host = make_host(lambda: (lock, Walk())[1], time_limit=9, workers=1)
    with pytest.raises(SettingsError, match="cannot be sent to another process .* give its class"):
        host.open(1, 0)
    with pytest.raises(SettingsError, match="on_fault must be one of stop, drop, got 'go on'"):
        make_host(Walk, time_limit=9, on_fault="go on")


def test_a_worker_needs_no_jax():
    check = "import arnpg.envs.worker_process, sys; assert not {'jax', 'equinox', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)


ORPHANS = """
import os, signal
from arnpg.envs import make_host
batch = make_host("CartPole-v1", backend="gymnasium", workers=2).open(2, 0)
batch.reset()
print(*(worker.pid for worker in batch._stepper._workers), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_end_with_the_run_that_is_killed():
    run = subprocess.run([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True, timeout=120)
    assert run.returncode == -signal.SIGKILL
    pids, deadline = [int(word) for word in run.stdout.split()], time.monotonic() + 20
    while any(map(running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(pids) == 2
    assert not any(map(running, pids))


def running(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
