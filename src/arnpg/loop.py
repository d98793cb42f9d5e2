"""The only macro loop: compiled, in chunks, for one algorithm or a whole batch of them.

A chunk is one compiled call; between chunks the host sees the trace, calls back, notices Ctrl-C, and decides whether
to go on. The number of steps in a chunk is data, not shape, so it follows the clock without compiling again.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from arnpg.arrays import AnyArray
from arnpg.errors import NumericalError, SettingsError
from arnpg.inner_loop import Policy, Work
from arnpg.method import AbstractMethod, Algorithm, State, StepInfo

__all__ = ["Carry", "Chunk", "Run", "Tally", "begin", "run", "run_batch", "stack"]

CAPACITY = 512
CHUNK_SECONDS = 0.5
FEASIBLE = 1e-9

Observe = Callable[[Any, Policy], Any]


class Tally(eqx.Module):
    """What is kept of the iterates: the best one, feasible before infeasible, and the sum of what is observed."""

    policy: Policy
    objective: Float[AnyArray, ""]
    violation: Float[AnyArray, ""]
    total: Any


class Carry(eqx.Module):
    """Everything that a run continues from; a checkpoint is this and nothing else."""

    state: State
    work: Work
    tally: Tally
    step: Int[AnyArray, ""]


class Chunk(NamedTuple):
    """What the host sees after a chunk: steps done and asked for, the chunk's trace, seconds since the start."""

    done: int
    steps: int
    trace: StepInfo
    seconds: float


class Run(NamedTuple):
    """A finished run: its trace (NumPy, steps first), the last and the best iterate, the mean of what was observed."""

    trace: StepInfo
    last: Policy
    best: Policy
    average: Any
    carry: Carry
    seconds: float


def run(
    algorithm: Algorithm,
    steps: int,
    *,
    key: PRNGKeyArray | None = None,
    carry: Carry | None = None,
    observe: Observe | None = None,
    on_chunk: Callable[[Chunk], None] | None = None,
    stop: Callable[[Chunk, Carry], bool] | None = None,
    time_limit: float = float("inf"),
) -> Run:
    """Run ``steps`` macro steps, or fewer where ``stop`` says so or the time is up.

    Args:
        algorithm: a method and its inner loop.
        steps: macro steps ``K``.
        key: where the randomness comes from; the same key, the same run.
        carry: a run to continue, in the place of ``key``.
        observe: a function of the inner loop and each iterate whose mean over the iterates is returned.
        on_chunk: called after each chunk, for progress.
        stop: called after each chunk; true ends the run.
        time_limit: seconds.
    """
    return _run(algorithm, None, steps, key, carry, observe, on_chunk, stop, time_limit)


def run_batch(algorithms: Sequence[Algorithm], steps: int, *, keys: PRNGKeyArray | None = None, **keywords: Any) -> Run:
    """Run several algorithms of one shape as one compiled call; every array of the result has the batch first.

    The algorithms may differ in step sizes, thresholds, whole models; ``keys`` gives each its own randomness.
    """
    if not algorithms:
        raise SettingsError("algorithms must hold at least one algorithm, got none.")
    stacked, axes = stack([_dynamic(algorithm) for algorithm in algorithms])
    if keys is None:
        keys = jax.random.split(jax.random.key(0), len(algorithms))
    defaults = {"carry": None, "observe": None, "on_chunk": None, "stop": None, "time_limit": float("inf")}
    return _run(stacked, axes, steps, keys, *(defaults | keywords).values())


def stack(trees: Sequence[Any]) -> tuple[Any, Any]:
    """Stack the leaves that differ along a new first axis; returns the tree and its ``vmap`` axes."""
    leaves, structures = zip(*(jax.tree.flatten(tree) for tree in trees), strict=True)
    if any(structure != structures[0] for structure in structures):
        raise SettingsError("algorithms of a batch must be of one kind, got different structures; run them apart.")
    stacked, axes = [], []
    for group in zip(*leaves, strict=True):
        same = all(leaf is group[0] or np.array_equal(leaf, group[0]) for leaf in group[1:])
        if not same and any(np.shape(leaf) != np.shape(group[0]) for leaf in group):
            raise SettingsError(f"algorithms of a batch must have equal shapes, got {[np.shape(g) for g in group]}.")
        stacked.append(group[0] if same else np.stack([np.asarray(leaf) for leaf in group]))
        axes.append(None if same else 0)
    return jax.tree.unflatten(structures[0], stacked), jax.tree.unflatten(structures[0], axes)


def begin(algorithm: Algorithm, key: PRNGKeyArray, observe: Observe | None = None) -> Carry:
    """The carry before the first macro step."""
    policy, work = algorithm.inner.start(key)
    state, work = algorithm.method.init(algorithm.inner, policy, work)
    total = None if observe is None else jax.tree.map(jnp.zeros_like, observe(algorithm.inner, policy))
    worst = Tally(policy, -jnp.inf * jnp.ones(()), jnp.inf * jnp.ones(()), total)
    return Carry(state, work, worst, jnp.zeros((), int))


def advance(
    algorithm: Algorithm, carry: Carry, count: Int[AnyArray, ""], capacity: int, observe: Observe | None
) -> tuple[Carry, StepInfo]:
    """``count <= capacity`` macro steps; the trace has ``capacity`` rows, the first ``count`` of them filled."""

    def body(index: Array, loop: tuple[Carry, StepInfo]) -> tuple[Carry, StepInfo]:
        carry, trace = loop
        state, work, info = algorithm.method.step(algorithm.inner, carry.state, carry.work)
        tally = _tally(algorithm, carry.tally, state, info, observe)
        trace = jax.tree.map(lambda rows, row: rows.at[index].set(row), trace, info)
        return Carry(state, work, tally, carry.step + 1), trace

    shapes = jax.eval_shape(algorithm.method.step, algorithm.inner, carry.state, carry.work)[2]
    empty = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), shapes)
    return jax.lax.fori_loop(0, count, body, (carry, empty))


def _tally(algorithm: Algorithm, tally: Tally, state: State, info: StepInfo, observe: Observe | None) -> Tally:
    method: AbstractMethod = algorithm.method
    policy = method.iterate(state)
    objective = method.criterion.value(info.values)
    violation = method.criterion.violation(info.values)
    violation = jnp.where(violation <= FEASIBLE, 0.0, violation)
    better = (violation < tally.violation) | ((violation == tally.violation) & (objective > tally.objective))
    choose = lambda new, old: jnp.where(better, new, old)  # noqa: E731
    total = tally.total
    if observe is not None:
        total = jax.tree.map(jnp.add, total, observe(algorithm.inner, policy))
    return Tally(
        jax.tree.map(choose, policy, tally.policy),
        choose(objective, tally.objective),
        choose(violation, tally.violation),
        total,
    )


def _run(
    algorithm: Algorithm,
    axes: Any,
    steps: int,
    key: PRNGKeyArray | None,
    carry: Carry | None,
    observe: Observe | None,
    on_chunk: Callable[[Chunk], None] | None,
    stop: Callable[[Chunk, Carry], bool] | None,
    time_limit: float,
) -> Run:
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise SettingsError(f"steps must be a whole number >= 1, got {steps!r}.")
    algorithm = _dynamic(algorithm)
    began = time.monotonic()
    with _precision(algorithm):
        if carry is None:
            carry = _begin(algorithm, axes, jax.random.key(0) if key is None else key, observe)
        traces, done, pace = [], 0, CAPACITY
        capacity = min(steps, CAPACITY)
        while done < steps:
            count = min(pace, capacity, steps - done)
            started = time.monotonic()
            carry, trace = _advance(algorithm, axes, carry, np.int64(count), capacity, observe)
            rows = (
                (lambda leaf: np.asarray(leaf)[:count]) if axes is None else (lambda leaf: np.asarray(leaf)[:, :count])
            )
            traces.append(jax.tree.map(rows, jax.block_until_ready(trace)))
            took = time.monotonic() - started
            _check_finite(traces[-1], done, 0 if axes is None else 1)
            done += count
            pace = int(np.clip(count * CHUNK_SECONDS / max(took, 1e-9), 1, 4 * pace))
            chunk = Chunk(done, steps, traces[-1], time.monotonic() - began)
            if on_chunk is not None:
                on_chunk(chunk)
            if (stop is not None and stop(chunk, carry)) or chunk.seconds > time_limit:
                break
    return _finish(algorithm, axes, traces, carry, time.monotonic() - began)


def _finish(algorithm: Algorithm, axes: Any, traces: list[StepInfo], carry: Carry, seconds: float) -> Run:
    axis = 0 if axes is None else 1
    trace = jax.tree.map(lambda *parts: np.concatenate(parts, axis), *traces)
    last = algorithm.method.iterate(carry.state)
    host = lambda tree: jax.tree.map(np.asarray, tree)  # noqa: E731
    count = np.asarray(carry.step).max()
    average = jax.tree.map(lambda leaf: np.asarray(leaf) / count, carry.tally.total)
    return Run(trace, host(last), host(carry.tally.policy), average, carry, seconds)


@eqx.filter_jit
def _begin(algorithm: Algorithm, axes: Any, key: PRNGKeyArray, observe: Observe | None) -> Carry:
    if axes is None:
        return begin(algorithm, key, observe)
    return eqx.filter_vmap(lambda a, k: begin(a, k, observe), in_axes=(axes, 0))(algorithm, key)


@eqx.filter_jit
def _advance(
    algorithm: Algorithm, axes: Any, carry: Carry, count: Int[AnyArray, ""], capacity: int, observe: Observe | None
) -> tuple[Carry, StepInfo]:
    if axes is None:
        return advance(algorithm, carry, count, capacity, observe)
    step = lambda a, c: advance(a, c, count, capacity, observe)  # noqa: E731
    return eqx.filter_vmap(step, in_axes=(axes, 0))(algorithm, carry)


def _dynamic(algorithm: Algorithm) -> Algorithm:
    """Settings as arrays, so that another step size does not compile again; whole numbers stay part of the program."""
    return jax.tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, float) else leaf, algorithm)


def _precision(algorithm: Algorithm) -> contextlib.AbstractContextManager:
    """Tabular inner loops compile in float64, whatever the user's configuration; it is left as it was."""
    return jax.enable_x64(True) if algorithm.inner.float64 else contextlib.nullcontext()


def _check_finite(trace: StepInfo, done: int, axis: int) -> None:
    finite = np.isfinite(trace.values).all(axis=-1)
    if not finite.all():
        step = int(np.argwhere(~finite)[:, axis].min()) + done + 1
        raise NumericalError(f"values are not finite at macro step {step}; lower step_size or raise regularisation.")
