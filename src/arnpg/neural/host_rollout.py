"""A batch of paths from environments on the host, and the live environments that runs borrow for it.

Every batch begins with fresh episodes, drawn from the batch's own key. So no episode straddles two policies (an old
policy's cost must not steer the dual), a batch is a function of policy and key alone, and a run resumes exactly.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from arnpg.envs.host import AbstractHostBatch, AbstractHostEnvironment
from arnpg.errors import NumericalError

from .networks import AbstractPolicy
from .numpy_actor import NumpyActor
from .rollout import Batch, Rollout

__all__ = ["LiveEnvironments", "collect_on_host"]


def collect_on_host(
    rollout: Rollout,
    live: AbstractHostBatch,
    policy: AbstractPolicy,
    key: PRNGKeyArray,
    *,
    deterministic: bool = False,
    first_episodes: bool = False,
) -> Batch:
    """Run the policy in all environments side by side; raw observations, NumPy arrays.

    With ``first_episodes`` the batch ends when the first episode of every path has. Rows that are no steps are marked.
    """
    seed_key, noise_key = jax.random.split(key)
    noise = np.asarray(policy.noise(noise_key, (rollout.steps, rollout.paths)))
    act, rows = NumpyActor(policy, deterministic), []
    going_on = np.ones(rollout.paths, bool)
    observations = live.reset(int(jax.random.bits(seed_key, dtype="uint32")) >> 1)
    for step in range(rollout.steps):
        actions = act(observations, noise[step])
        _check(actions, step)
        seen = live.step(actions)
        row = (observations, actions, seen.rewards, seen.next_observations, seen.terminated, seen.truncated)
        rows.append((*row, np.zeros(rollout.paths, bool) if seen.dropped is None else seen.dropped))
        observations = seen.observations
        going_on &= ~(seen.terminated | seen.truncated)
        if first_episodes and not going_on.any():
            break
    return Batch(*(np.stack(column) for column in zip(*rows, strict=True)))  # type: ignore[arg-type]


class LiveEnvironments:
    """Open environments, as many batches as there are runs at work; each is reset before it is used.

    A description is known by what it says, since a run's tree is taken apart and built again for every call.

    They are a cache and no part of what an inner loop is: any two of them are equal, so that a compiled program serves
    both.
    """

    def __init__(self) -> None:
        self._idle: list[tuple[AbstractHostEnvironment, AbstractHostBatch]] = []
        self._lock = threading.Lock()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LiveEnvironments)

    def __hash__(self) -> int:
        return hash(LiveEnvironments)

    def __repr__(self) -> str:
        return "LiveEnvironments()"

    @contextlib.contextmanager
    def lend(self, env: AbstractHostEnvironment, count: int) -> Iterator[AbstractHostBatch]:
        """An idle batch of this kind, or a new one; one that failed is not given out again."""
        live = self._idle_one(env, count) or env.open(count, 0)
        try:
            yield live
        except BaseException:
            live.close()
            raise
        with self._lock:
            self._idle.append((env, live))

    def close(self) -> None:
        """Close those that are idle; a later loan opens new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, live in idle:
            live.close()

    def _idle_one(self, env: AbstractHostEnvironment, count: int) -> AbstractHostBatch | None:
        with self._lock:
            for index, (kind, live) in enumerate(self._idle):
                if kind == env and live.count == count:
                    return self._idle.pop(index)[1]
        return None


def _check(actions: np.ndarray, step: int) -> None:
    if actions.dtype.kind == "f" and not np.isfinite(actions).all():
        index = int(np.argwhere(~np.isfinite(actions))[0][0])
        raise NumericalError(
            f"the policy's action for environment {index} at step {step} of the batch is {actions[index]}; "
            "lower the learning rate or the KL limit."
        )
