"""How macro steps are carried out: begun, advanced and tallied, compiled or not, one run or a whole batch.

Where the inner loop can be compiled, so is the macro step, with the inner loop inside: one program for a batch
(``vmap``), or one program and a thread for each run. Where it steps environments of the host (``compiled = False``) the
same functions are called as they stand, a thread for each run.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from arnpg.arrays import AnyArray
from arnpg.batch import on_threads, take
from arnpg.inner_loop import Policy, Work
from arnpg.method import Algorithm, State, StepInfo

__all__ = ["Carry", "Tally", "Watch", "advance", "advance_all", "begin", "begin_all", "step"]

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


def begin_all(algorithm: Algorithm, axes: Any, key: PRNGKeyArray, watch: Watch) -> Carry:
    """The carry before the first macro step, of one run (``axes`` none) or of each run of a batch."""
    if axes is None:
        return _begin_one(algorithm, key, watch)
    if algorithm.inner.compiled and algorithm.inner.vectorised:
        return _begin_together(algorithm, axes, key, watch)
    make = lambda index: _begin_one(take(algorithm, axes, index), key[index], watch)  # noqa: E731
    if algorithm.inner.compiled:
        make(0)  # compiles, or every thread would
    return on_threads(make, len(key))


def advance_all(
    algorithm: Algorithm, axes: Any, carry: Carry, count: Int[AnyArray, ""], capacity: int, watch: Watch
) -> tuple[Carry, tuple[StepInfo, Any]]:
    """``count <= capacity`` macro steps of one run or of each; of the traces' rows at least ``count`` are filled."""
    if axes is None:
        return _advance_one(algorithm, carry, count, capacity, watch)
    if algorithm.inner.compiled and algorithm.inner.vectorised:
        return _advance_together(algorithm, axes, carry, count, capacity, watch)

    def one(index: int, count: Int[AnyArray, ""] = count) -> tuple[Carry, tuple[StepInfo, Any]]:
        own = jax.tree.map(lambda leaf: leaf[index], carry)
        return jax.block_until_ready(_advance_one(take(algorithm, axes, index), own, count, capacity, watch))

    if algorithm.inner.compiled:
        one(0, np.zeros_like(count))  # compiles, or every thread would
    return on_threads(one, carry.step.shape[0])


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


def _begin_one(algorithm: Algorithm, key: PRNGKeyArray, watch: Watch) -> Carry:
    return (_begin_compiled if algorithm.inner.compiled else begin)(algorithm, key, watch)


def _advance_one(
    algorithm: Algorithm, carry: Carry, count: Int[AnyArray, ""], capacity: int, watch: Watch
) -> tuple[Carry, tuple[StepInfo, Any]]:
    compiled = algorithm.inner.compiled
    return (_advance_compiled if compiled else _advance_stepped)(algorithm, carry, count, capacity, watch)


def _advance_stepped(
    algorithm: Algorithm, carry: Carry, count: Int[AnyArray, ""], capacity: int, watch: Watch
) -> tuple[Carry, tuple[StepInfo, Any]]:
    """Step by step, the traces as NumPy arrays."""
    shown = []
    for _ in range(int(count)):
        carry, row = step(algorithm, carry, watch)
        shown.append(row)
    return carry, jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *shown)


_begin_compiled = eqx.filter_jit(begin)
_advance_compiled = eqx.filter_jit(advance)


@eqx.filter_jit
def _begin_together(algorithm: Algorithm, axes: Any, keys: PRNGKeyArray, watch: Watch) -> Carry:
    return eqx.filter_vmap(lambda a, k: begin(a, k, watch), in_axes=(axes, 0))(algorithm, keys)


@eqx.filter_jit
def _advance_together(
    algorithm: Algorithm, axes: Any, carry: Carry, count: Int[AnyArray, ""], capacity: int, watch: Watch
) -> tuple[Carry, tuple[StepInfo, Any]]:
    batched = eqx.filter_vmap(lambda a, c: advance(a, c, count, capacity, watch), in_axes=(axes, 0))
    return batched(algorithm, carry)


