"""Critics by one pass of Adam against the scripts' L-BFGS: explained variance on the next, unseen batch; CPU time.

    taskset -c 1 python bench/neural_critics.py [ITERATIONS]

Both follow one training on Acrobot and are fitted to the same targets, batch by batch, each from where it was. L-BFGS
is SciPy's, 20 iterations a critic, and as in the scripts a critic is kept where the new one explains its batch less.
"""

import os
import sys
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize

from arnpg.envs import Acrobot
from arnpg.neural.advantages import path_values
from arnpg.neural.inner_loop import NeuralInnerLoop
from arnpg.neural.networks import Network

WEIGHTS = jnp.array([1.0, -0.2, -0.2])
STEPS = 20


def explained(values: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """``1 - Var(target - V) / Var(target)`` of each objective."""
    return 1 - (targets - values).var(axis=0) / targets.var(axis=0)


class ByLBFGS:
    """Three networks of the same shape as the critics."""

    def __init__(self, inputs: int, count: int) -> None:
        built = [Network().build(key, inputs, 1) for key in jax.random.split(jax.random.key(7), count)]
        flat, unravel = ravel_pytree(built[0])
        self.parameters = [np.asarray(ravel_pytree(net)[0], np.float64) for net in built]
        self.value = jax.jit(lambda theta, x: unravel(theta)(x)[..., 0])
        self.loss = jax.jit(jax.value_and_grad(lambda theta, x, y: ((unravel(theta)(x)[..., 0] - y) ** 2).mean()))

    def __call__(self, x: jax.Array) -> np.ndarray:
        return np.stack([np.asarray(self.value(jnp.float32(theta), x)) for theta in self.parameters], -1)

    def fit(self, x: jax.Array, targets: np.ndarray) -> None:
        before = explained(self(x), targets)
        old = list(self.parameters)
        for index, theta in enumerate(old):
            goal = jnp.asarray(targets[:, index])

            def both(theta: np.ndarray, goal: jax.Array = goal) -> tuple[float, np.ndarray]:
                loss, slope = self.loss(jnp.float32(theta), x, goal)
                return float(loss), np.asarray(slope, np.float64)

            self.parameters[index] = minimize(both, theta, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
        after = explained(self(x), targets)
        better = after >= before
        self.parameters = [new if up else kept for new, kept, up in zip(self.parameters, old, better, strict=True)]


def main(iterations: int = 100) -> None:
    """Print means over the second half."""
    inner = NeuralInnerLoop(Acrobot())
    evaluate, improve, fit = (eqx.filter_jit(f) for f in (inner.evaluate, inner.improve, inner.fit.__call__))
    policy, work = inner.start(jax.random.key(0))
    critics, state, other = work.learnt.critics, work.learnt.fit, ByLBFGS(6, 3)
    rows, seconds = [], []
    for index in range(iterations):
        _, work = evaluate(policy, work)
        batch = work.batch
        values, bootstrap = path_values(critics, batch, inner.cuts())
        _, targets = inner.advantages(batch, values, bootstrap, inner.discount)
        x, y = batch.observations.reshape(-1, 6), np.asarray(targets.reshape(-1, 3))
        rows.append((explained(np.asarray(critics(x)), y), explained(other(x), y)))
        times = [time.process_time()]
        critics, state = jax.block_until_ready(fit(critics, state, x, jnp.asarray(y), jax.random.key(index)))
        times.append(time.process_time())
        other.fit(x, y)
        times.append(time.process_time())
        seconds.append(np.diff(times))
        policy, work, _ = improve(policy, WEIGHTS, 1, work)
    half = iterations // 2
    scores, spent = np.array(rows)[half:].mean(axis=0), np.median(seconds, axis=0)
    for name, score, second in zip(("Adam, one pass", f"L-BFGS, {STEPS} iterations"), scores, spent, strict=True):
        each = ", ".join(f"{value:.3f}" for value in score)
        print(f"{name:24} explained on unseen batches {score.mean():.3f} ({each}), {1e3 * second:.1f} ms CPU a fit")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
