"""How long one waits: for the import, the help, the first answer of a fresh process, and the next in a running one.

    taskset -c 1 python bench/latency.py

Wall seconds and CPU seconds, each the least of several tries: what the machine does beside it adds, and never takes
away. A fresh process counts from its start to its end, with whatever it imports and compiles. In the running process,
each new shape is a number of states that was not solved before; the model is the paper's random one with 10 actions.
"""

from __future__ import annotations

import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from arnpg import MaxMin, ProportionalFair, save_model, solve
from arnpg.criteria import AbstractCriterion, Constrained
from arnpg.examples import random_cmdp

PYTHON = sys.executable
TRIES = 7
SIZES = (20, 50, 100, 150, 200)


def both(call: Callable[[], object], children: bool = False) -> tuple[float, float]:
    """Wall and CPU seconds of one call; of the processes that it starts where ``children``."""
    who = resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF
    before, began = resource.getrusage(who), time.perf_counter()
    call()
    wall, after = time.perf_counter() - began, resource.getrusage(who)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def fresh(*words: str) -> tuple[float, float]:
    """The least of several tries in processes of their own."""
    quietly = {"stdout": subprocess.DEVNULL, "env": os.environ, "check": True}
    times = [both(lambda: subprocess.run([PYTHON, *words], **quietly), children=True) for _ in range(TRIES)]
    return min(wall for wall, _ in times), min(cpu for _, cpu in times)


def criteria(size: int) -> dict[str, AbstractCriterion]:
    mdp = random_cmdp(states=size)
    least = 0.97 * solve(mdp, MaxMin()).values["r2"]
    return {
        "limits": Constrained("r1", at_least={"r2": least}),
        "sum-log": ProportionalFair(),
        "max-min": MaxMin(),
    }


def shapes() -> tuple[tuple[float, float], tuple[float, float]]:
    """The slowest solve of a new shape, and of a known one, over sizes and criteria; each the least of three tries."""
    new, known = [], []
    for size in SIZES:
        first = both(lambda size=size: solve(random_cmdp(states=size), MaxMin()))
        firsts = [first]
        for index, other in enumerate((size - 1, size - 2)):
            firsts.append(both(lambda s=other, i=index: solve(random_cmdp(s, states=s), MaxMin())))
        new.append(tuple(map(min, zip(*firsts, strict=True))))
        for criterion in criteria(size).values():
            mdp = random_cmdp(11, states=size)
            again = [both(lambda m=mdp, c=criterion: solve(m, c)) for _ in range(3)]
            known.append(tuple(map(min, zip(*again, strict=True))))
    return max(new), max(known)


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as place:
        path = str(pathlib.Path(place) / "model.npz")
        save_model(random_cmdp(), path)
        rows.append(("a Python that does nothing", *fresh("-c", "pass"), ""))
        rows.append(("`import arnpg`", *fresh("-c", "import arnpg"), "1"))
        rows.append(("`import arnpg; arnpg.solve`, which brings JAX", *fresh("-c", "import arnpg; arnpg.solve"), ""))
        rows.append(("`arnpg --help`", *fresh("-m", "arnpg", "--help"), "0.3"))
        words = ("solve", path, "--maximize", "r1", "--at-least", "r2=3")
        rows.append(("`arnpg solve`, 20 states, fresh process", *fresh("-m", "arnpg", *words), "3"))
    solve(random_cmdp(states=12), MaxMin())
    new, known = shapes()
    rows.append(("a new shape in a running process, up to 200 states", *new, "0.3"))
    rows.append(("a known shape, any criterion, up to 200 states", *known, "0.05"))
    print("| what | wall seconds | CPU seconds | promised |\n|---|---|---|---|")
    for name, wall, cpu, promised in rows:
        print(f"| {name} | {wall:.3f} | {cpu:.3f} | {promised and '< ' + promised} |")


if __name__ == "__main__":
    main()
