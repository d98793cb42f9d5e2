"""What a trial runs: algorithms, steps, keys and what is watched; its shapes before it runs, and its fingerprint."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from arnpg.errors import SettingsError
from arnpg.execution import begin, step
from arnpg.loop import Carry, Chunk, OnChunk, Run, Watch, run, run_batch
from arnpg.method import Algorithm
from arnpg.runs.checkpoint import named_leaves

__all__ = ["Job", "job"]

ROWS = 1000  # rows of metrics that a run leaves, at most


class Job(NamedTuple):
    """One algorithm, or a batch of them, for a number of steps."""

    algorithms: tuple[Algorithm, ...]
    batch: bool
    steps: int
    keys: Any
    watch: Watch

    def run(self, steps: int, carry: Carry | None, on_chunk: OnChunk) -> Run:
        """Run ``steps`` of them, from the start or from a carry."""
        if self.batch:
            return run_batch(self.algorithms, steps, keys=self.keys, carry=carry, watch=self.watch, on_chunk=on_chunk)
        return run(self.algorithms[0], steps, key=self.keys, carry=carry, watch=self.watch, on_chunk=on_chunk)

    def shapes(self) -> tuple[Any, Any]:
        """The shapes of the carry, and of one row of trace and watched values, without computing anything."""
        first = jax.tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, float) else leaf, self.algorithms[0])
        key = self.keys[0] if self.batch else self.keys
        with jax.enable_x64(True) if first.inner.float64 else contextlib.nullcontext():
            carry = eqx.filter_eval_shape(lambda a, k: begin(a, k, self.watch), first, key)
            row = eqx.filter_eval_shape(lambda a, c: step(a, c, self.watch)[1], first, carry)
        if not self.batch:
            return carry, row
        return jax.tree.map(self._widen, (carry, row))

    def _widen(self, leaf: Any) -> Any:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        return jax.ShapeDtypeStruct((len(self.algorithms), *leaf.shape), leaf.dtype)

    def fingerprint(self) -> str:
        """A SHA-256 of every number and every name that decides the result."""
        digest = hashlib.sha256(f"{self.batch} {self.steps}".encode())
        for tree in (*self.algorithms, self.keys, self.watch):
            digest.update(_plain(str(jax.tree.structure(tree))).encode())
            for name, leaf in named_leaves(tree).items():
                digest.update(name.encode())
                digest.update(_bytes(leaf))
        return digest.hexdigest()

    def rows(
        self, chunk: Chunk, start: int, entries: Mapping[str, Sequence[str]] = MappingProxyType({})
    ) -> Iterator[tuple[int, dict[str, float]]]:
        """The rows of metrics of a chunk that began after step ``start``; a batch is shown by its means.

        ``entries`` names the entries of vectors, such as ``{"values": ("reward", "cost")}``; others are numbered.
        """
        leaves = {name: np.asarray(leaf) for name, leaf in named_leaves(chunk.trace).items()}
        if self.batch:
            leaves = {name: leaf.mean(axis=0) for name, leaf in leaves.items()}
        count = len(next(iter(leaves.values())))
        every = -(-self.steps // ROWS)
        for index in range(count):
            number = start + index + 1
            if number % every == 0 or number == self.steps:
                pairs = (_flat(key, leaf[index], entries.get(key, ())) for key, leaf in leaves.items())
                yield number, {name: value for some in pairs for name, value in some}

    def result(self, carry: Carry, trace: Any, rows: Any, seconds: float) -> Run:
        """A finished run, in the words of the macro loop."""
        iterate = self.algorithms[0].method.iterate(carry.state)
        last, best = jax.tree.map(np.asarray, (iterate, carry.tally.policy))
        count = int(np.asarray(carry.step).max())
        mean = jax.tree.map(lambda leaf: np.asarray(leaf) / count, carry.tally.total)
        return Run(trace, rows, last, best, mean, carry, seconds)


def job(algorithms: Algorithm | Sequence[Algorithm], steps: int, keys: Any, watch: Watch) -> Job:
    """Check what is asked for; keys are those of the macro loop by default."""
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise SettingsError(f"steps must be a whole number >= 1, got {steps!r}.")
    if isinstance(algorithms, Algorithm):
        return Job((algorithms,), False, int(steps), jax.random.key(0) if keys is None else keys, watch)
    if not algorithms:
        raise SettingsError("algorithms must hold at least one algorithm, got none.")
    keys = jax.random.split(jax.random.key(0), len(algorithms)) if keys is None else keys
    if np.ndim(keys) == 0 or len(keys) != len(algorithms):
        raise SettingsError(f"keys must hold one key for each of the {len(algorithms)} algorithms.")
    return Job(tuple(algorithms), True, int(steps), keys, watch)


def _bytes(leaf: Any) -> bytes:
    if hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    if isinstance(leaf, jax.Array | np.ndarray | np.generic):
        array = np.asarray(leaf)
        return f"{array.dtype} {array.shape}".encode() + array.tobytes()
    if callable(leaf):
        return f"{getattr(leaf, '__module__', '')}.{getattr(leaf, '__qualname__', _plain(repr(leaf)))}".encode()
    return _plain(repr(leaf)).encode()


def _plain(text: str) -> str:
    """Without addresses in memory, which differ from process to process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def _flat(name: str, value: np.ndarray, names: Sequence[str]) -> Iterator[tuple[str, float]]:
    """``values/reward`` or, without names for all entries, ``values/0``; a number keeps its name."""
    if value.ndim == 0:
        yield name, value.item()
    else:
        words = names if len(names) == value.size else range(value.size)
        for word, entry in zip(words, value.ravel().tolist(), strict=True):
            yield f"{name}/{word}", entry
