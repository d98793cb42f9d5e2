"""Training steps per second on Hopper-v4: ARPPO-EPD beside EnvPool alone, Stable-Baselines3 and MORL-Baselines.

    python bench/neural_hopper.py [--rounds 8] [--warm 10] [--cores 1 2] [--peer-python PYTHON]

Each row is a process of its own, held to one core or to two; the rows of a core count take turns, one batch each, so
that what else the machine does falls on all of them. CPU seconds are those of all threads of the row's process.

*ARPPO-EPD* runs whole macro steps as ``arnpg.train`` does (rollout, ten epochs, two critics, dual, values): 8 paths of
256 steps with episodes of at most 256, so that a batch is 2,048 steps as in the paper, and every episode in it whole;
8 paths of 1,000 steps with the usual time limit; 2 paths of 1,024 steps, the paper's. *EnvPool alone* replays the
actions of the batch just trained on, from the same starts, with the same resets, in the same process: the episodes are
the same, which their rewards show.

``--peer-python`` names an interpreter in an environment of its own that has the peers:

    python3 -m venv peers && peers/bin/pip install torch stable-baselines3 morl-baselines "mo-gymnasium[mujoco]"

They run PPO with 8 environments and batches of 2,048 steps (``hopper_peers.py``): Stable-Baselines3 on Hopper-v4, with
its defaults and one reward; MORL-Baselines' MO-PPO on mo-hopper-v5, with a weight for each of its three rewards.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

OBJECTIVES = {"return": "reward", "speed": lambda t: abs(t.info["x_velocity"])}
PEERS = {"sb3": "Stable-Baselines3, PPO, 8 environments", "morl": "MORL-Baselines, MO-PPO, 8 environments"}


class Shape(NamedTuple):
    """Paths, their steps, and the time limit."""

    paths: int
    steps: int
    limit: int


SHAPES = {
    "8 paths of 256 steps": Shape(8, 256, 256),
    "8 paths of 1,000 steps": Shape(8, 1000, 1000),
    "2 paths of 1,024 steps": Shape(2, 1024, 1000),
}
Block = dict[str, tuple[int, float, float]]  # of each measured thing: steps, wall and CPU seconds


def clock(call: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


class Training:
    """ARPPO-EPD, a macro step at a time."""

    def __init__(self, shape: Shape) -> None:
        import jax

        from arnpg import Constrained, Discounted
        from arnpg.envs import make_host
        from arnpg.execution import Watch, begin
        from arnpg.neural import values
        from arnpg.neural.rollout import Rollout
        from arnpg.recipes.neural import arppo_epd

        self.env = make_host("Hopper-v4", OBJECTIVES, backend="envpool", time_limit=shape.limit)
        limit = Constrained("return", at_most={"speed": Discounted(82.748, 0.99)}).bind(self.env.names)
        parts: Any = {"rollout": Rollout(*shape[:2]), "values": (values.EpisodeTotal(), values.Discounted(0.99))}
        self.algorithm = arppo_epd(self.env, limit, iterations=500, **parts)
        self.carry = begin(self.algorithm, jax.random.key(0), Watch())

    def step(self) -> None:
        import jax

        from arnpg.execution import Watch, step

        self.carry, shown = step(self.algorithm, self.carry, Watch())
        jax.block_until_ready((self.carry, shown))

    def replay(self) -> Callable[[], None]:
        """EnvPool alone, through the episodes of the last batch."""
        import envpool
        import numpy as np

        batch, inner = self.carry.work.batch, self.algorithm.inner
        seeds = inner.live._idle[0][1]._pool.seeds  # type: ignore[attr-defined]
        over = np.asarray(batch.terminated | batch.truncated)
        ends = [np.flatnonzero(row).astype(np.int32) for row in over]
        actions = np.clip(np.asarray(batch.actions), -1, 1).astype(np.float64)
        expected, ids = np.asarray(batch.rewards[..., 0]), np.arange(len(seeds), dtype=np.int32)
        pool = envpool.make(
            "Hopper-v4", env_type="gymnasium", num_envs=len(seeds), env_seed=seeds, max_episode_steps=over.shape[0] + 1
        )
        pool.reset()

        def call() -> None:
            found = []
            for action, end in zip(actions, ends, strict=True):
                pool.send(action, ids)
                found.append(pool.recv()[1])
                if len(end):
                    pool.reset(end)
            if not np.array_equal(np.asarray(found, np.float32), expected):
                raise RuntimeError("EnvPool alone did not play the episodes of the training.")

        return call


def row(name: str, warm: int) -> None:
    """A row's process: a block for each line that it is sent."""
    shape = SHAPES[name]
    training, size = Training(shape), shape.paths * shape.steps
    for _ in range(warm):
        training.step()
    training.replay()()
    print("ready", flush=True)
    for _ in sys.stdin:
        mine = clock(training.step)
        alone = clock(training.replay())
        print(json.dumps({"train": (size, *mine), "alone": (size, *alone)}), flush=True)


class Row:
    """A row as its parent sees it."""

    def __init__(self, words: list[str], cores: int) -> None:
        places = set(sorted(os.sched_getaffinity(0))[:cores])
        limits = {**os.environ, "OMP_NUM_THREADS": str(cores)}
        self.process: Any = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            env=limits,
            preexec_fn=lambda: os.sched_setaffinity(0, places),
        )
        self.await_line("ready")

    def await_line(self, start: str) -> str:
        for line in self.process.stdout:
            if line.startswith(start):
                return line
        raise RuntimeError(f"{self.process.args} ended with {self.process.wait()}; run it alone to see why.")

    def block(self) -> Block:
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return json.loads(self.await_line("{"))

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def commands(given: argparse.Namespace) -> dict[str, list[str]]:
    words = [sys.executable, str(pathlib.Path(__file__).resolve()), "--warm", str(given.warm), "--row"]
    found = {name: [*words, name] for name in SHAPES}
    if given.peer_python:
        script = str(pathlib.Path(__file__).resolve().with_name("hopper_peers.py"))
        found |= {label: [given.peer_python, script, name] for name, label in PEERS.items()}
    return found


def measure(given: argparse.Namespace, cores: int) -> None:
    rows = {name: Row(words, cores) for name, words in commands(given).items()}
    seen: dict[str, list[Block]] = {name: [] for name in rows}
    for _ in range(given.rounds):
        for name, process in rows.items():
            seen[name].append(process.block())
    for process in rows.values():
        process.close()
    for name, blocks in seen.items():
        show(name, cores, blocks)


def show(name: str, cores: int, blocks: list[Block]) -> None:
    """Medians, and the share of EnvPool alone of each round."""
    labels = {"train": f"ARPPO-EPD, {name}" if name in SHAPES else name, "alone": "EnvPool alone, the same episodes"}
    for kind in blocks[0]:
        wall, cpu = ([block[kind][0] / block[kind][place] for block in blocks] for place in (1, 2))
        share = ""
        if kind == "train" and "alone" in blocks[0]:
            share = f"{statistics.median(b['alone'][2] / b['train'][2] for b in blocks):.2f}"
        rates = f"{statistics.median(wall):,.0f} | {statistics.median(cpu):,.0f} | {max(cpu):,.0f}"
        print(f"| {labels[kind]} | {cores} | {rates} | {share} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--warm", type=int, default=10)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--peer-python")
    parser.add_argument("--row", choices=SHAPES)
    given = parser.parse_args()
    if given.row:
        row(given.row, given.warm)
        return
    print("| Hopper | cores | steps per wall s | steps per CPU s, median | best | share of EnvPool alone |")
    print("|---|---|---|---|---|---|", flush=True)
    for cores in given.cores:
        measure(given, cores)


if __name__ == "__main__":
    main()
