"""The only macro loop: in chunks, for one algorithm or a whole batch of them.

A chunk is one compiled call (``execution`` has the exceptions); between chunks the host sees the trace, calls back,
notices Ctrl-C, and decides whether to go on. The number of steps in a chunk is data, not shape, so it follows the clock
without compiling again.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from arnpg.batch import stack
from arnpg.errors import NumericalError, SettingsError
from arnpg.execution import Carry, Watch, advance_all, begin_all
from arnpg.inner_loop import Policy
from arnpg.method import Algorithm, StepInfo

__all__ = ["Carry", "Chunk", "OnChunk", "Run", "Watch", "run", "run_batch"]

CAPACITY = 512
FIRST_CHUNK = 16
CHUNK_SECONDS = 0.5


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
        if carry is None:
            carry = begin_all(algorithm, axes, key, watch)
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


def _dynamic(algorithm: Algorithm) -> Algorithm:
    """Settings as arrays, so that another step size does not compile again; whole numbers stay part of the program.

    Arrays as new views: JAX remembers an array object in the precision that first read it, which may not be this run's.
    """
    kinds = float | np.ndarray
    return jax.tree.map(lambda leaf: np.asarray(leaf).view() if isinstance(leaf, kinds) else leaf, algorithm)


def _precision(algorithm: Algorithm) -> contextlib.AbstractContextManager:
    """Tabular inner loops compile in float64, whatever the user's configuration; it is left as it was."""
    return jax.enable_x64(True) if algorithm.inner.float64 else contextlib.nullcontext()


def _check_finite(trace: StepInfo, done: int, axes: Any) -> None:
    finite = np.isfinite(trace.values).all(axis=-1)
    if not finite.all():
        step = int(np.argwhere(~finite)[:, 0 if axes is None else 1].min()) + done + 1
        raise NumericalError(f"values are not finite at macro step {step}; lower step_size or raise regularisation.")
