"""A run in a process of its own, to be killed: ``victim.py FOLDER STEPS [slow] [batch] [sampled] [cli]``.

It writes ``up`` when the first chunk is done and, with ``slow``, writes every file in slices with pauses, noting in
``saving`` whether it is in the middle of a save.
"""

import os
import pathlib
import sys
import time

import jax
import numpy as np
from agreement import first_row

from arnpg import MDP, Constrained
from arnpg.loop import Watch
from arnpg.recipes import tabular as recipes
from arnpg.runs import checkpoint, files, trace
from arnpg.runs.trial import Every, run_trial
from arnpg.tabular.exact import occupancy
from arnpg.tabular.simulator import TableSimulator


def algorithms(batch, sampled=False):
    """ARNPG-EPD on five states and three actions, exact or sampled, alone or with three step sizes."""
    draws = np.random.default_rng(3)
    rewards = {name: draws.uniform(size=(5, 3)) for name in ("first", "second")}
    mdp = MDP(draws.dirichlet(np.ones(5), size=(5, 3)), rewards, discount=0.7)
    criterion = Constrained("first", at_least={"second": 1.5}).bind(mdp.names)
    model = TableSimulator(mdp) if sampled else mdp
    made = [recipes.arnpg_epd(model, criterion, step_size=size, trajectories=2) for size in (0.001, 0.002, 0.003)]
    return made if batch else made[0]


def run(folder, steps, batch=False, progress=None, sampled=False, **options):
    """The trial that the tests interrupt."""
    keys = jax.random.split(jax.random.key(5), 3) if batch else jax.random.key(5)
    return run_trial(
        folder,
        algorithms(batch, sampled),
        steps,
        keys=keys,
        watch=Watch(mean=None if sampled else occupancy, each=first_row),
        progress=progress,
        checkpoint_every=Every(0.0),
        **options,
    )


class Told:
    """Notes that the first chunk is done; fractions go nowhere."""

    def __init__(self, folder):
        self.path = pathlib.Path(f"{folder}.up")

    def update(self, fraction, text=""):
        if text.startswith("step"):
            self.path.touch()

    def say(self, text):
        os.write(2, f"{text}\n".encode())


def slow_down(folder):
    """Slices and pauses in every write, before and after each rename."""
    mark = pathlib.Path(f"{folder}.saving")

    def write_slowly(handle, data):
        mark.touch()
        for part in range(4):
            size = -(-len(data) // 4)
            os.write(handle, data[part * size : (part + 1) * size])
            time.sleep(0.005)

    def replace_slowly(source, target, replace=os.replace):
        time.sleep(0.005)
        replace(source, target)
        time.sleep(0.005)
        mark.unlink(missing_ok=True)

    files.write_all = trace.write_all = write_slowly
    files.os.replace = replace_slowly
    return checkpoint


def main(folder, steps, *words):
    """Run; with ``cli`` inside the command, so that its exit codes are seen."""
    if "slow" in words:
        slow_down(folder)
    work = lambda: run(folder, int(steps), "batch" in words, Told(folder), "sampled" in words)  # noqa: E731
    if "cli" not in words:
        work()
        return 0
    import arnpg.cli as cli

    cli._dispatch = lambda arguments: work() and 0
    return cli.main(["victim"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
