"""A small training, in this process or in one of its own to be killed: ``training_victim.py FOLDER [slow]``.

With ``slow`` every chunk is followed by a pause, so that there are moments to be killed at.
"""

import pathlib
import sys
import time

import arnpg
from arnpg.neural.networks import Network
from arnpg.neural.rollout import Rollout

ENV = arnpg.envs.CartPole(time_limit=50)  # as long as a path, so that values and fresh episodes agree
CRITERION = arnpg.Constrained("upright", at_most={"distance": 5.0})
ITERATIONS = 20
SMALL = {"policy": Network((8,)), "critic": Network((8,)), "rollout": Rollout(4, 50)}


def train(criterion=CRITERION, **settings):
    """Two seeds of 20 iterations, unless the settings say otherwise."""
    given = {"iterations": ITERATIONS, "seeds": 2, "progress": False, **SMALL, **settings}
    return arnpg.train(ENV, criterion, **given)


def main(folder, *words):
    """Train into the folder, a checkpoint after each chunk; ``up`` says that there is one."""

    def tell(progress):
        if progress.iteration > 2:
            pathlib.Path(f"{folder}.up").touch()
        time.sleep(0.3 if "slow" in words else 0)

    train(out=folder, checkpoint_every=0.0, resume="auto", progress=tell)


if __name__ == "__main__":
    main(*sys.argv[1:])
