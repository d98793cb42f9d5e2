"""Speed of neural training on Acrobot: environment alone, rollout, whole ARNPG-EPD iterations, a batch of seeds; TRPO.

    taskset -c 1 python bench/neural_acrobot.py [--repeats 20] [--peer-python PYTHON] [--batch]

CPU seconds of one thread, the least and the median over the repeats; one iteration is one micro step on 5,000 steps
with three critics of 128x128, so a macro step of ``t_k = 2`` is timed and halved. ``--peer-python`` is an interpreter
that has sb3-contrib: its TRPO on ten environments, networks of 128x128, batches of 5,000, one objective, one thread.
``--batch`` (on two cores, without taskset) compares a batch of ten seeds with one seed, in wall and in CPU seconds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

if "--batch" not in sys.argv:
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import equinox as eqx
import jax
import jax.numpy as jnp

from arnpg import Constrained
from arnpg.envs import Acrobot
from arnpg.loop import run_batch
from arnpg.neural.inner_loop import NeuralInnerLoop
from arnpg.neural.natural_gradient import NaturalGradient, TrustRegion
from arnpg.neural.networks import Network, make_policy
from arnpg.neural.rollout import Rollout
from arnpg.recipes.neural import arnpg_epd

MICRO_STEPS = 2
WEIGHTS = (1.0, -0.3, -0.2)
PEER = """
import json, sys, time
import torch
torch.set_num_threads(1)
from sb3_contrib import TRPO
from stable_baselines3.common.env_util import make_vec_env
model = TRPO("MlpPolicy", make_vec_env("Acrobot-v1", n_envs=10, seed=0), n_steps=500, cg_max_steps=10, seed=0,
             policy_kwargs={"net_arch": [128, 128]}, device="cpu")
model.learn(5000)
found = []
for _ in range(int(sys.argv[1])):
    began = time.process_time()
    model.learn(5000, reset_num_timesteps=False)
    found.append(time.process_time() - began)
print(json.dumps(found))
"""


def clock(call: Callable[[], object], repeats: int) -> list[float]:
    jax.block_until_ready(call())
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        jax.block_until_ready(call())
        seconds.append(time.process_time() - start)
    return seconds


def report(name: str, steps: int, seconds: list[float]) -> None:
    best, median = min(seconds), statistics.median(seconds)
    print(
        f"{name:44} {1e3 * best:8.2f} ms best {1e3 * median:8.2f} ms median"
        f" {steps / best:12,.0f} steps/s best {steps / median:12,.0f} median"
    )


def environment_alone(env: Acrobot, rollout: Rollout, key: jax.Array) -> object:
    actions = jax.random.randint(key, (rollout.steps, rollout.paths), 0, 3)
    state = jax.vmap(env.reset)(jax.random.split(key, rollout.paths))

    def body(state: object, action: jax.Array) -> tuple[object, object]:
        step = jax.vmap(env.step, in_axes=(0, 0, None))(state, action, key)
        return step.state, (step.rewards, step.state.observation, step.terminated)

    return jax.lax.scan(body, state, actions)


def macro_step(inner: NeuralInnerLoop, policy: object, work: object) -> object:
    policy, work, info = inner.improve(policy, jnp.array(WEIGHTS), MICRO_STEPS, work)
    values, work = inner.evaluate(policy, work)
    return policy, work, info, values


def iteration(inner: NeuralInnerLoop, key: jax.Array) -> Callable[[], object]:
    """A closure that takes one macro step further at each call, as training does."""
    step = eqx.filter_jit(macro_step)
    policy, work = inner.start(key)
    _, work = inner.evaluate(policy, work)
    carry = [policy, work]

    def call() -> object:
        carry[0], carry[1], *shown = step(inner, *carry)
        return shown

    return call


def peer(python: str, repeats: int) -> None:
    """TRPO of sb3-contrib, an iteration of 5,000 steps at a time."""
    words = [python, "-c", PEER, str(repeats)]
    places = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(words, env=places, capture_output=True, encoding="utf-8", check=True)
    report("TRPO of sb3-contrib, 10 environments", 5000, json.loads(ran.stdout.splitlines()[-1]))


def batch(repeats: int) -> None:
    """Macro steps of one seed and of ten, turn about."""
    criterion = Constrained("height", at_most={"swing1": 50, "swing2": 50}).bind(Acrobot().names)
    algorithm, macro_steps = arnpg_epd(Acrobot(), criterion), 5
    found: dict[int, list[tuple[float, float]]] = {1: [], 10: []}
    for turn in range(repeats + 1):
        for seeds, seen in found.items():
            keys = jax.random.split(jax.random.key(turn), seeds)
            wall, cpu = time.monotonic(), time.process_time()
            run_batch([algorithm] * seeds, macro_steps, keys=keys)
            if turn:
                seen.append((time.monotonic() - wall, time.process_time() - cpu))
    rates = {}
    for seeds, seen in found.items():
        steps = seeds * (macro_steps * MICRO_STEPS + 1) * Rollout().size
        rates[seeds] = [steps / min(column) for column in zip(*seen, strict=True)]
        print(f"{seeds:2} seeds: {rates[seeds][0]:12,.0f} steps/s wall best {rates[seeds][1]:12,.0f} steps/CPU s best")
    print(f"ten seeds against one: {rates[10][0] / rates[1][0]:.2f} in wall time")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--peer-python")
    parser.add_argument("--batch", action="store_true")
    given = parser.parse_args()
    repeats = given.repeats
    if given.batch:
        batch(repeats)
        return
    env, rollout, key = Acrobot(), Rollout(), jax.random.key(0)
    policy = make_policy(key, Network(), env.observation_size, env.actions)
    alone = eqx.filter_jit(environment_alone)
    report("environment alone, 10 paths", rollout.size, clock(lambda: alone(env, rollout, key), repeats))
    collect = eqx.filter_jit(rollout.collect)
    report("rollout, 10 paths, policy 128x128", rollout.size, clock(lambda: collect(env, policy, key), repeats))
    for share in (1.0, 0.2):
        inner = NeuralInnerLoop(env, update=TrustRegion(natural_gradient=NaturalGradient(share=share)))
        seconds = [s / MICRO_STEPS for s in clock(iteration(inner, key), repeats)]
        report(f"iteration, Fisher on {share:.0%} of the batch", rollout.size, seconds)
    if given.peer_python:
        peer(given.peer_python, repeats)


if __name__ == "__main__":
    main()
