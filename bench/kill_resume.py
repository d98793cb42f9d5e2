"""Kill a run with SIGKILL at random moments, half of them in the middle of a save, and compare what comes out of it.

    python bench/kill_resume.py [KILLS] [sampled]

Each run is killed once, resumed in a fresh process, and its result compared bit by bit with that of an undisturbed run.
"""

import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests" / "runs"
PLACES = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(TESTS)])}
STEPS = {"exact": 40_000, "sampled": 10_000}
DIGEST = """
import agreement, hashlib, sys, victim
found = victim.run(sys.argv[1], int(sys.argv[2]), "batch" in sys.argv, sampled="sampled" in sys.argv)
print(hashlib.sha256(b"".join(array.tobytes() for array in agreement.arrays(found))).hexdigest())
"""


def digest(folder: pathlib.Path, kind: tuple[str, str]) -> str:
    """Run to the end in a fresh process; the SHA-256 of every array of the result."""
    words = [sys.executable, "-c", DIGEST, str(folder), str(STEPS[kind[0]]), *kind]
    return subprocess.run(words, env=PLACES, capture_output=True, encoding="utf-8", check=True).stdout.strip()


def kill(folder: pathlib.Path, kind: tuple[str, str], in_save: bool, draws: random.Random) -> bool:
    """Start, kill at a random moment; whether it was in the middle of a save."""
    script, speed = str(TESTS / "victim.py"), "slow" if in_save else "quick"
    words = [sys.executable, script, str(folder), str(STEPS[kind[0]]), *kind, speed]
    process = subprocess.Popen(words, env=PLACES, stderr=subprocess.DEVNULL)
    up, saving = pathlib.Path(f"{folder}.up"), pathlib.Path(f"{folder}.saving")
    while not up.exists() and process.poll() is None:
        time.sleep(0.001)
    time.sleep(draws.uniform(0, 0.5))
    while in_save and not saving.exists() and process.poll() is None:
        pass
    time.sleep(draws.uniform(0, 0.015) if in_save else 0)
    process.kill()
    if process.wait() != -9:
        raise SystemExit("a run ended before it was killed; raise STEPS")
    return saving.exists()


def main(kills: int = 100, loop: str = "exact") -> int:
    """Print the counts; 0 where all results are identical."""
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        # Processes by the hundred: what one has compiled the others need not.
        PLACES.update(JAX_COMPILATION_CACHE_DIR=str(place / "xla"), JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0")
        right = {kind: digest(place / f"whole-{kind[1]}", kind) for kind in ((loop, "single"), (loop, "batch"))}

        def once(number: int) -> tuple[bool, bool]:
            kind = (loop, "batch" if number % 4 > 1 else "single")
            caught = kill(place / str(number), kind, number % 2 == 0, random.Random(number))
            identical = digest(place / str(number), kind) == right[kind]
            print(f"kill {number}: in a save {caught}, identical {identical}", file=sys.stderr, flush=True)
            return caught, identical

        began = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(once, range(kills)))
    caught, identical = (sum(column) for column in zip(*found, strict=True))
    print(f"{loop}: {kills} kills, {caught} in the middle of a save, {identical} bit-identical results", end=" ")
    print(f"({time.monotonic() - began:.0f} s)")
    return 0 if identical == kills else 1


if __name__ == "__main__":
    sys.exit(main(*(int(word) if word.isdigit() else word for word in sys.argv[1:])))
