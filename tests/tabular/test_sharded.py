"""Transitions over 1, 2 and 4 devices, and over two processes: the answers of one to 1e-10."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from sparse_models import pair

import arnpg
from arnpg.examples import multiclass_queue, random_cmdp

PROGRAM = str(Path(__file__).with_name("sharded_program.py"))


def start(words: list[str], devices: int) -> subprocess.Popen:
    flags = {**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}", "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(
        [sys.executable, PROGRAM, *words], env=flags, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def answers(process: subprocess.Popen) -> list[dict]:
    out, problems = process.communicate(timeout=120)
    assert process.returncode == 0, problems
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def test_devices_and_processes_give_the_answer_of_one_host() -> None:
    """The same program on every device; sums of slots are in another order, hence 1e-10 and not equality."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = str(probe.getsockname()[1])
    together = [start([port, str(number), "2"], 1) for number in range(2)]
    alone = answers(start([], 4))
    host = arnpg.solve(multiclass_queue(64, discount=0.9), arnpg.MaxMin({"served 1": 1.0, "served 2": 1.0}))
    for found in [*alone, *(answer for process in together for answer in answers(process))]:
        assert found["certified"]
        assert not found["x64"]
        np.testing.assert_allclose(found["values"], alone[0]["values"], rtol=1e-10)
        assert abs(min(found["values"][:2]) - host.objective) <= host.gap + found["bound"] - min(found["values"][:2])
    assert [found["devices"] for found in alone] == [1, 2, 4]


@pytest.mark.parametrize("seed", range(4))
def test_masks_and_mixing_agree_with_the_host(seed: int) -> None:
    sparse, dense = pair(seed, 0.9)
    expected = arnpg.solve(dense, arnpg.MaxMin(), gap=1e-9)
    found = arnpg.solve(sparse, arnpg.MaxMin(), gap=1e-9, devices=jax.devices())
    assert found.certified
    assert found.objective == pytest.approx(expected.objective, rel=2e-9)
    assert sparse.allowed is None or not found.policy.probabilities[~sparse.allowed].any()


def test_what_cannot_be_spread_is_refused() -> None:
    with pytest.raises(arnpg.SettingsError, match="devices goes with sparse models"):
        arnpg.solve(random_cmdp(), arnpg.MaxMin(), devices=jax.devices())
    with pytest.raises(arnpg.SettingsError, match="devices must hold at least one device"):
        arnpg.solve(multiclass_queue(64), arnpg.MaxMin(), devices=[])
    with pytest.raises(arnpg.SettingsError, match=r"devices must be a list of JAX devices, .* got 5"):
        arnpg.solve(multiclass_queue(64), arnpg.MaxMin(), devices=5)
