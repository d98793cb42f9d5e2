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
from arnpg.batch import on_threads, stack, take
from arnpg.errors import NumericalError, SettingsError
from arnpg.inner_loop import Policy, Work
from arnpg.method import Algorithm, State, StepInfo

__all__ = ["Carry", "Chunk", "Run", "Tally", "Watch", "begin", "run", "run_batch"]

CAPACITY = 512
FIRST_CHUNK = 16
CHUNK_SECONDS = 0.5
FEASIBLE = 1e-9

Observe = Callable[[Any, Policy], Any]


class Watch(NamedTuple):
    """What a run keeps of its iterates, as functions of the inner loop and the policy: a mean, and a row each step."""

    mean: Observe | None = None
    each: Observe | None = None


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
    """What the host sees after a chunk: steps done and asked for, the chunk's trace, seconds, and how to continue."""

    done: int
    steps: int
    trace: StepInfo
    rows: Any
    seconds: float
    carry: Carry


OnChunk = Callable[[Chunk], bool | None]


class Run(NamedTuple):
    """A finished run, as NumPy arrays: its trace with steps first, the last and the best iterate, what was watched."""

    trace: StepInfo
    rows: Any
    last: Policy
    best: Policy
    mean: Any
    carry: Carry
    seconds: float


def run(
    algorithm: Algorithm,
    steps: int,
    *,
    key: PRNGKeyArray | None = None,
    carry: Carry | None = None,
    watch: Watch = Watch(),  # noqa: B008
    on_chunk: OnChunk | None = None,
    time_limit: float = float("inf"),
) -> Run:
    """Run ``steps`` macro steps, or fewer where ``on_chunk`` says so or the time is up.

    Args:
        algorithm: a method and its inner loop.
        steps: macro steps ``K``.
        key: where the randomness comes from; the same key, the same run.
        carry: a run to continue, in the place of ``key``.
        watch: what to keep of the iterates.
        on_chunk: called after each chunk, for progress and checkpoints; true ends the run.
        time_limit: seconds.
    """
    key = jax.random.key(0) if key is None else key
    return _run(_dynamic(algorithm), None, steps, key, carry, watch, on_chunk, time_limit)


def run_batch(
    algorithms: Sequence[Algorithm],
    steps: int,
    *,
    keys: PRNGKeyArray | None = None,
    carry: Carry | None = None,
    watch: Watch = Watch(),  # noqa: B008
    on_chunk: OnChunk | None = None,
    time_limit: float = float("inf"),
) -> Run:
    """Run several algorithms of one shape as one compiled call; every array of the result has the batch first.

    The algorithms may differ in step sizes, thresholds, whole models; ``keys`` gives each its own randomness.
    """
    if not algorithms:
        raise SettingsError("algorithms must hold at least one algorithm, got none.")
    stacked, axes = stack([_dynamic(algorithm) for algorithm in algorithms])
    keys = jax.random.split(jax.random.key(0), len(algorithms)) if keys is None else keys
    return _run(stacked, axes, steps, keys, carry, watch, on_chunk, time_limit)


def begin(algorithm: Algorithm, key: PRNGKeyArray, watch: Watch = Watch()) -> Carry:  # noqa: B008
    """The carry before the first macro step."""
    policy, work = algorithm.inner.start(key)
    state, work = algorithm.method.init(algorithm.inner, policy, work)
    total = None if watch.mean is None else jax.tree.map(jnp.zeros_like, watch.mean(algorithm.inner, policy))
    worst = Tally(policy, -jnp.inf * jnp.ones(()), jnp.inf * jnp.ones(()), total)
    return Carry(state, work, worst, jnp.zeros((), int))


def advance(
    algorithm: Algorithm,
    carry: Carry,
    count: int | Int[AnyArray, ""],
    capacity: int,
    watch: Watch = Watch(),  # noqa: B008
) -> tuple[Carry, tuple[StepInfo, Any]]:
    """``count <= capacity`` macro steps; traces have ``capacity`` rows, the first ``count`` of them filled."""

    def body(index: Array, loop: tuple[Carry, Any]) -> tuple[Carry, Any]:
        carry, traces = loop
        carry, row = step(algorithm, carry, watch)
        return carry, jax.tree.map(lambda rows, row: rows.at[index].set(row), traces, row)

    shapes = eqx.filter_eval_shape(lambda a, c: step(a, c, watch)[1], algorithm, carry)
    empty = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), shapes)
    return jax.lax.fori_loop(0, count, body, (carry, empty))


def step(algorithm: Algorithm, carry: Carry, watch: Watch) -> tuple[Carry, tuple[StepInfo, Any]]:
    """One macro step, tallied."""
    state, work, info = algorithm.method.step(algorithm.inner, carry.state, carry.work)
    policy = algorithm.method.iterate(state)
    tally = _tally(algorithm, carry.tally, policy, info, watch)
    row = None if watch.each is None else watch.each(algorithm.inner, policy)
    return Carry(state, work, tally, carry.step + 1), (info, row)


def _tally(algorithm: Algorithm, tally: Tally, policy: Policy, info: StepInfo, watch: Watch) -> Tally:
    criterion = algorithm.method.criterion
    objective = criterion.value(info.values)
    violation = criterion.violation(info.values)
    violation = jnp.where(violation <= FEASIBLE, 0.0, violation)
    better = (violation < tally.violation) | ((violation == tally.violation) & (objective > tally.objective))

    def choose(new: Any, old: Any) -> Any:
        return jnp.where(better, new, old)

    total = tally.total
    if watch.mean is not None:
        total = jax.tree.map(jnp.add, total, watch.mean(algorithm.inner, policy))
    best = jax.tree.map(choose, policy, tally.policy)
    return Tally(best, choose(objective, tally.objective), choose(violation, tally.violation), total)


def _run(
    algorithm: Algorithm,
    axes: Any,
    steps: int,
    key: PRNGKeyArray,
    carry: Carry | None,
    watch: Watch,
    on_chunk: OnChunk | None,
    time_limit: float,
) -> Run:
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise SettingsError(f"steps must be a whole number >= 1, got {steps!r}.")
    began = time.monotonic()
    with _precision(algorithm):
        together = axes is None or algorithm.inner.vectorised
        if carry is None:
            carry = (_begin if together else _begin_each)(algorithm, axes, key, watch)
        advance_all = _advance if together else _advance_each
        parts, done, pace = [], 0, FIRST_CHUNK if algorithm.inner.vectorised else 1
        while done < steps:
            count = min(pace, CAPACITY, steps - done)
            started = time.monotonic()
            carry, filled = advance_all(algorithm, axes, carry, np.asarray(count), min(steps, CAPACITY), watch)
            parts.append(_rows(filled, count, axes))
            pace = _pace(count, time.monotonic() - started)
            _check_finite(parts[-1][0], done, axes)
            done += count
            trace, rows = parts[-1]
            chunk = Chunk(done, steps, trace, rows, time.monotonic() - began, carry)
            if (on_chunk is not None and on_chunk(chunk)) or chunk.seconds > time_limit:
                break
    return _finish(algorithm, axes, parts, carry, time.monotonic() - began)


def _rows(filled: Any, count: int, axes: Any) -> Any:
    """The rows of a chunk that were filled, on the host; waits until they are there."""
    whole = jax.tree.map(np.asarray, jax.block_until_ready(filled))
    return jax.tree.map(lambda leaf: leaf[:count] if axes is None else leaf[:, :count], whole)


def _pace(count: int, seconds: float) -> int:
    """Steps for the next chunk, so that it takes about ``CHUNK_SECONDS``."""
    return int(np.clip(count * CHUNK_SECONDS / max(seconds, 1e-9), 1, 4 * count))


def _finish(algorithm: Algorithm, axes: Any, parts: list, carry: Carry, seconds: float) -> Run:
    trace, rows = jax.tree.map(lambda *leaves: np.concatenate(leaves, 0 if axes is None else 1), *parts)
    count = int(np.asarray(carry.step).max())
    last, best = jax.tree.map(np.asarray, (algorithm.method.iterate(carry.state), carry.tally.policy))
    mean = jax.tree.map(lambda leaf: np.asarray(leaf) / count, carry.tally.total)
    return Run(trace, rows, last, best, mean, carry, seconds)


@eqx.filter_jit
def _begin(algorithm: Algorithm, axes: Any, key: PRNGKeyArray, watch: Watch) -> Carry:
    if axes is None:
        return begin(algorithm, key, watch)
    return eqx.filter_vmap(lambda a, k: begin(a, k, watch), in_axes=(axes, 0))(algorithm, key)


@eqx.filter_jit
def _advance(
    algorithm: Algorithm, axes: Any, carry: Carry, count: Int[AnyArray, ""], capacity: int, watch: Watch
) -> tuple[Carry, tuple[StepInfo, Any]]:
    if axes is None:
        return advance(algorithm, carry, count, capacity, watch)
    batched = eqx.filter_vmap(lambda a, c: advance(a, c, count, capacity, watch), in_axes=(axes, 0))
    return batched(algorithm, carry)


def _begin_each(algorithm: Algorithm, axes: Any, keys: PRNGKeyArray, watch: Watch) -> Carry:
    """The runs of a batch one by one; the first one is made twice, as it compiles for all threads."""
    make = lambda index: _begin(take(algorithm, axes, index), None, keys[index], watch)  # noqa: E731
    make(0)
    return on_threads(make, len(keys))


def _advance_each(
    algorithm: Algorithm, axes: Any, carry: Carry, count: Int[AnyArray, ""], capacity: int, watch: Watch
) -> tuple[Carry, tuple[StepInfo, Any]]:
    """The runs of a batch one by one, on as many threads as there are cores."""

    def one(index: int, count: Int[AnyArray, ""] = count) -> tuple[Carry, tuple[StepInfo, Any]]:
        mine, own = take(algorithm, axes, index), jax.tree.map(lambda leaf: leaf[index], carry)
        return jax.block_until_ready(_advance(mine, None, own, count, capacity, watch))

    one(0, np.zeros_like(count))  # compiles, or every thread would
    return on_threads(one, carry.step.shape[0])


def _dynamic(algorithm: Algorithm) -> Algorithm:
    """Settings as arrays, so that another step size does not compile again; whole numbers stay part of the program."""
    return jax.tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, float) else leaf, algorithm)


def _precision(algorithm: Algorithm) -> contextlib.AbstractContextManager:
    """Tabular inner loops compile in float64, whatever the user's configuration; it is left as it was."""
    return jax.enable_x64(True) if algorithm.inner.float64 else contextlib.nullcontext()


def _check_finite(trace: StepInfo, done: int, axes: Any) -> None:
    finite = np.isfinite(trace.values).all(axis=-1)
    if not finite.all():
        step = int(np.argwhere(~finite)[:, 0 if axes is None else 1].min()) + done + 1
        raise NumericalError(f"values are not finite at macro step {step}; lower step_size or raise regularisation.")
