"""Kill a training with SIGKILL at random moments, resume it, and compare it bit by bit with an undisturbed one.

    python bench/kill_training.py [KILLS]

Each of the runs is killed once, at a random moment between its first checkpoint and its end, and finished here.
"""

import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests" / "training"
sys.path[:0] = [str(ROOT / "src"), str(TESTS)]

import jax
import numpy as np
import training_victim


def bits(run: object) -> bytes:
    trace = [getattr(run.trace, name) for name in run.trace.__dataclass_fields__]
    return b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves((run.last, run.best, trace)))


def killed(folder: pathlib.Path, moment: float, cache: pathlib.Path) -> int:
    """Start, kill so many seconds after the first checkpoint; the number of steps that were saved."""
    places = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path[:2]),
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    words = [sys.executable, training_victim.__file__, str(folder), "slow"]
    process = subprocess.Popen(words, env=places, stderr=subprocess.DEVNULL)
    while not pathlib.Path(f"{folder}.up").exists() and process.poll() is None:
        time.sleep(0.005)
    time.sleep(moment)
    process.kill()
    if process.wait() != -9:
        raise SystemExit("a run ended before it was killed")
    return len(list((folder / "checkpoints").iterdir()))


def main(kills: int = 20) -> int:
    """Print the counts; 0 where all results are identical."""
    draws, identical = random.Random(0), 0
    right = bits(training_victim.train())
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        for number in range(kills):
            saved = killed(place / str(number), draws.uniform(0, 0.8), place / "cache")
            same = bits(training_victim.train(out=place / str(number), resume="auto")) == right
            identical += same
            print(f"kill {number}: {saved} files of checkpoints, identical {same}", file=sys.stderr, flush=True)
    print(f"training: {kills} kills, {identical} bit-identical results")
    return 0 if identical == kills else 1


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:])))
