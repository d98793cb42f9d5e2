"""Transitions spread over several devices, by states: the same solver, with its products done by all of them.

Each device holds the successor slots of a block of states. Vectors over states are small beside the transitions, so
every device has them whole: a product is a gather and a sum on each block, then one exchange of ``S`` numbers. With
``jax.distributed`` the devices may belong to several processes; each runs the same program and gets the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int

from arnpg.errors import SettingsError
from arnpg.tabular.slots import AbstractChain, AbstractSlots, Improvement, SlotKernel

__all__ = ["ShardedChain", "ShardedSlots"]

AXIS = "states"


class _Slots(NamedTuple):
    """Rows of successors with their probabilities; rows are states, or states and actions."""

    successors: Int[Array, "*rows k"]
    chances: Float[Array, "*rows k"]


@jax.jit
def _selected(slots: _Slots, actions: Int[Array, " s"]) -> _Slots:
    """The slots of one action for each state."""
    chosen = actions[:, None, None]
    pick = lambda table: jnp.take_along_axis(table, chosen, axis=1)[:, 0]  # noqa: E731
    return _Slots(pick(slots.successors), pick(slots.chances))


@jax.jit
def _mixed(slots: _Slots, policy: Float[Array, "s a"]) -> _Slots:
    """All slots of a state, each action's weighted by its probability."""
    weighted = slots.chances * policy[:, :, None]
    return _Slots(slots.successors.reshape(len(policy), -1), weighted.reshape(len(policy), -1))


def _expected(slots: _Slots, values: Float[Array, " s"]) -> Array:
    """``sum_k p_k U[s_k]``, a slot at a time: no array of all slots is made."""
    total = jnp.zeros(slots.successors.shape[:-1])
    for slot in range(slots.successors.shape[-1]):
        total += slots.chances[..., slot] * values[slots.successors[..., slot]]
    return total


def _arrived(slots: _Slots, visits: Float[Array, " s"], count: int) -> Array:
    """Where a distribution over states is after one step."""
    total = jnp.zeros(count)
    for slot in range(slots.successors.shape[-1]):
        total = total.at[slots.successors[:, slot]].add(slots.chances[:, slot] * visits)
    return total


def _sources(slots: _Slots, count: int) -> Array:
    """From how many states each state is reached."""
    return _arrived(_Slots(slots.successors, (slots.chances > 0).astype(float)), jnp.ones(len(slots.successors)), count)


def _best(
    slots: _Slots, allowed: Array, reward: Array, values: Array, discount: Float[Array, ""]
) -> tuple[Array, Array]:
    """The greedy action and the Bellman operator."""
    gains = jnp.where(allowed, reward + discount * _expected(slots, values), -jnp.inf)
    return gains.argmax(axis=1).astype(np.int32), gains.max(axis=1)


@final
class ShardedChain(AbstractChain):
    """The chain of one policy, spread over devices."""

    def __init__(self, owner: ShardedSlots, slots: _Slots) -> None:
        self._owner, self._slots = owner, slots

    @property
    def slots(self) -> int:
        """The largest number of successors of a state."""
        return self._slots.successors.shape[-1]

    def forward(self, vector: Float[np.ndarray, " s"], serial: bool = False) -> Float[np.ndarray, " s"]:
        """``P x``."""
        del serial
        return self._owner.call(_expected, self._slots, vector)

    def backward(self, vector: Float[np.ndarray, " s"], serial: bool = False) -> Float[np.ndarray, " s"]:
        """``P^T x``."""
        del serial
        return self._owner.call(partial(_arrived, count=self._owner.padded), self._slots, self._owner.spread(vector))

    def arrivals(self) -> Int[np.ndarray, " s"]:
        """From how many states each state is reached."""
        return self._owner.call(partial(_sources, count=self._owner.padded), self._slots)


@final
class ShardedSlots(AbstractSlots):
    """Transitions over devices."""

    def __init__(self, kernel: SlotKernel, devices: Sequence[Any]) -> None:
        """Put a block of states on each device; states of zeros fill up the last block."""
        if not devices:
            raise SettingsError("devices must hold at least one device, got none; jax.devices() lists them.")
        self.n_states, self.n_actions, self.row_length = kernel.n_states, kernel.n_actions, kernel.row_length
        self.padded = -(-self.n_states // len(devices)) * len(devices)
        mesh = Mesh(np.array(devices), (AXIS,))
        self._rows, self._whole = (NamedSharding(mesh, PartitionSpec(part)) for part in (AXIS, None))
        allowed = np.ones((self.n_states, self.n_actions), bool) if kernel.allowed is None else kernel.allowed
        with jax.enable_x64(True):
            self._slots = _Slots(*(self.spread(table) for table in kernel.slots()))
            self._allowed = self.spread(allowed)

    def spread(self, table: np.ndarray) -> Array:
        """A table with states first, a block of its rows on each device."""
        shape = (self.padded, *table.shape[1:])

        def block(index: Any) -> np.ndarray:
            first, last, _ = index[0].indices(self.padded)
            part = table[first : min(last, self.n_states)]
            missing = (last - first) - len(part)
            return np.pad(part, [(0, missing), *[(0, 0)] * (table.ndim - 1)]) if missing else part

        with jax.enable_x64(True):
            return jax.make_array_from_callback(shape, self._rows, block)

    def call(self, function: Any, *arguments: Any) -> Any:
        """A compiled call whose results every process gets whole, without the filling."""
        with jax.enable_x64(True):
            results = _compiled(function, self._whole)(*arguments)
            return jax.tree.map(lambda result: np.array(result)[: self.n_states], results)

    def improve(
        self, reward: Float[np.ndarray, "s a"], values: Float[np.ndarray, " s"], discount: float
    ) -> Improvement:
        """``TU(s) = max_a reward(s, a) + discount * (P U)(s, a)`` and the first action that attains it."""
        scale = np.asarray(discount)
        return Improvement(*self.call(_best, self._slots, self._allowed, self.spread(reward), values, scale))

    def chain(self, policy: Int[np.ndarray, " s"] | Float[np.ndarray, "s a"]) -> ShardedChain:
        """The chain of a policy: an action for each state, or probabilities ``(S, A)``."""
        select = _selected if policy.ndim == 1 else _mixed
        with jax.enable_x64(True):
            return ShardedChain(self, select(self._slots, self.spread(policy)))


_CALLS: dict[Any, Any] = {}


def _compiled(function: Any, whole: NamedSharding) -> Any:
    """One compiled function for each formula and each set of devices."""
    key = (getattr(function, "func", function), tuple(getattr(function, "keywords", {}).items()), whole)
    if key not in _CALLS:
        _CALLS[key] = jax.jit(function, out_shardings=whole)
    return _CALLS[key]
