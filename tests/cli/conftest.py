import os
import subprocess
import sys

import numpy as np
import pytest

import arnpg


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    generator = np.random.RandomState(10)
    transitions = generator.uniform(size=(200, 20))
    transitions /= transitions.sum(1, keepdims=True)
    rewards = {name: generator.uniform(size=200).reshape(20, 10) for name in ("throughput", "battery")}
    path = tmp_path_factory.mktemp("model") / "model.npz"
    arnpg.save_model(arnpg.MDP(transitions.reshape(20, 10, 20), rewards, discount=0.8), path)
    return str(path)


@pytest.fixture
def shell(tmp_path):
    """Run ``arnpg`` as a user does, in a process of its own and an empty folder."""

    def run(*arguments, **environment):
        return subprocess.run(
            [sys.executable, "-m", "arnpg", *map(str, arguments)],
            capture_output=True,
            encoding="utf-8",
            cwd=tmp_path,
            env={**os.environ, **environment},
            timeout=120,
        )

    return run


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """The same in this process: quick, for the many ways in which input can be wrong."""
    from arnpg.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)  # which pytest-xdist sets, and a pipe does not

    def run(*arguments):
        code = main([str(word) for word in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run
