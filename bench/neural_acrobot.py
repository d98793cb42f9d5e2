"""Speed of neural training on Acrobot: environment alone, rollout, and a whole ARNPG-EPD iteration, in steps/CPU s.

    taskset -c 1 python bench/neural_acrobot.py [--repeats 20]

CPU seconds of this process, the least and the median over the repeats; one iteration is one micro step on 5,000
steps with three critics of 128x128, so a macro step of ``t_k = 2`` is timed and halved.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import equinox as eqx
import jax
import jax.numpy as jnp

from arnpg.envs import Acrobot
from arnpg.neural.inner_loop import NeuralInnerLoop
from arnpg.neural.natural_gradient import NaturalGradient, TrustRegion
from arnpg.neural.networks import Network, make_policy
from arnpg.neural.rollout import Rollout

MICRO_STEPS = 2
WEIGHTS = (1.0, -0.3, -0.2)


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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
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


if __name__ == "__main__":
    main()
