"""Environments on the host alone: our batches against EnvPool's and Gymnasium's own loops, the same actions replayed.

    taskset -c 1 python bench/host_stepping.py [--env Hopper-v4] [--steps 2000] [--repeats 5]

Steps per CPU second (all threads), 8 environments, the best of the repeats; the sides take turns, so that what else the
machine does falls on all of them. EnvPool's own loop counts the steps that it spends on resets, whose actions it
ignores, as steps. Actions keep the body up, so that episodes are long, or are random, so that they are short.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import gymnasium
import numpy as np

from arnpg.envs import make_host

COUNT = 8
SPEED = {"return": "reward", "speed": lambda t: abs(t.info["x_velocity"])}


def clock(call: Callable[[], int]) -> float:
    start = time.process_time()
    steps = call()
    return steps / (time.process_time() - start)


def ours(batch: object, actions: np.ndarray) -> Callable[[], int]:
    def call() -> int:
        for action in actions:
            batch.step(action)
        return actions.shape[0] * COUNT

    return call


def pool_alone(name: str, actions: np.ndarray) -> Callable[[], int]:
    import envpool

    pool = envpool.make(name, env_type="gymnasium", num_envs=COUNT, seed=0, num_threads=1)
    pool.reset()
    given, ids = actions.astype(np.float64), np.arange(COUNT, dtype=np.int32)

    def call() -> int:
        for action in given:
            pool.send(action, ids)
            pool.recv()
        return actions.shape[0] * COUNT

    return call


def vector_alone(name: str, actions: np.ndarray) -> Callable[[], int]:
    env = gymnasium.make_vec(name, num_envs=COUNT, vectorization_mode="sync")
    env.reset(seed=0)

    def call() -> int:
        for action in actions:
            env.step(action)
        return actions.shape[0] * COUNT

    return call


def draw(name: str, steps: int, calm: bool) -> np.ndarray:
    space = gymnasium.make(name).action_space
    draws = np.random.default_rng(0)
    scale = 0.05 if calm else 1.0
    return (scale * draws.uniform(space.low, space.high, (steps, COUNT, *space.shape))).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", default="Hopper-v4")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    warnings.filterwarnings("ignore", ".*is out of date")
    print(f"| {given.env}, {COUNT} environments | actions | steps per CPU s | share of its own loop |")
    print("|---|---|---|---|")
    for calm in (False, True):
        actions = draw(given.env, given.steps, calm)
        pool = make_host(given.env, SPEED, backend="envpool", workers=1).open(COUNT, 0)
        single = make_host(given.env, SPEED, backend="gymnasium").open(COUNT, 0)
        pool.reset()
        single.reset()
        few = max(given.steps // 4, 1)  # of the slow ones
        sides = {
            "EnvPool alone": pool_alone(given.env, actions),
            "arnpg on EnvPool": ours(pool, actions),
            "Gymnasium's SyncVectorEnv alone": vector_alone(given.env, actions[:few]),
            "arnpg on Gymnasium": ours(single, actions[:few]),
        }
        rates = {name: [] for name in sides}
        for _ in range(given.repeats):
            for name, call in sides.items():
                rates[name].append(clock(call))
        best = {name: max(found) for name, found in rates.items()}
        for alone, mine in (list(sides)[:2], list(sides)[2:]):
            for name in (alone, mine):
                kind = "near zero" if calm else "random"
                print(f"| {name} | {kind} | {best[name]:,.0f} | {best[name] / best[alone]:.2f} |")


if __name__ == "__main__":
    main()
