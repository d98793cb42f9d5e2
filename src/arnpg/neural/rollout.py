"""A batch of paths collected on the device: paths x steps, with resets inside a path (Section 5.3, Acrobot)."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from arnpg.envs.env import AbstractEnvironment, EnvState
from arnpg.errors import SettingsError

from .networks import AbstractPolicy

__all__ = ["Batch", "Rollout"]


class Batch(eqx.Module):
    """What a policy met, time first.

    ``next_observations`` are those before any reset.  An episode is over where ``terminated`` or ``truncated`` holds;
    the path's last step is cut, not truncated: the batch says nothing of it.  ``dropped`` marks rows that are no steps
    (``neural.dropped``); none where the environments cannot lose an episode.
    """

    observations: Float[Array, "t b o"]
    actions: Array
    rewards: Float[Array, "t b m"]
    next_observations: Float[Array, "t b o"]
    terminated: Bool[Array, "t b"]
    truncated: Bool[Array, "t b"]
    dropped: Bool[Array, "t b"] | None = None

    @property
    def over(self) -> Bool[Array, "t b"]:
        """Where the environment was reset after the step."""
        return self.terminated | self.truncated

    @property
    def cut(self) -> Bool[Array, "t b"]:
        """Where the future is unseen though there is one: truncation, or the end of the path without termination."""
        last = jnp.arange(self.terminated.shape[0]) == self.terminated.shape[0] - 1
        return (self.truncated | last[:, None]) & ~self.terminated


class Rollout(eqx.Module):
    """``paths`` paths of ``steps`` steps, each begun with a reset; an episode that ends inside one starts another."""

    paths: int = eqx.field(static=True, default=10)
    steps: int = eqx.field(static=True, default=500)

    def __check_init__(self) -> None:
        for name in ("paths", "steps"):
            if getattr(self, name) < 1:
                raise SettingsError(
                    f"{name} must be at least 1, got {getattr(self, name)}; a batch holds paths x steps."
                )

    @property
    def size(self) -> int:
        """Environment steps a batch."""
        return self.paths * self.steps

    def collect(self, env: AbstractEnvironment, policy: AbstractPolicy, key: PRNGKeyArray) -> Batch:
        """Run the policy in the environment, all paths side by side."""
        start_key, reset_key, noise_key, step_key = jax.random.split(key, 4)
        shape = (self.steps, self.paths)
        # Drawn for the whole batch: inside the time loop the draws would cost more than the physics.
        noise, keys = policy.noise(noise_key, shape), jax.random.split(step_key, shape)
        resets = jax.random.split(reset_key, self.steps)

        def body(state: EnvState, drawn: tuple) -> tuple[EnvState, Batch]:
            return _step(env, policy, state, *drawn)

        start = jax.vmap(env.reset)(jax.random.split(start_key, self.paths))
        return jax.lax.scan(body, start, (noise, keys, resets))[1]


def _step(
    env: AbstractEnvironment,
    policy: AbstractPolicy,
    state: EnvState,
    noise: Array,
    keys: PRNGKeyArray,
    reset_key: PRNGKeyArray,
) -> tuple[EnvState, Batch]:
    """One step of every path, and the reset of those whose episode is over."""
    action = policy(state.observation).sample(noise)
    step = jax.vmap(env.step)(state, action, keys)
    over = step.terminated | step.truncated

    def renewed() -> EnvState:
        fresh = jax.vmap(env.reset)(jax.random.split(reset_key, over.shape[0]))
        return jax.tree.map(lambda new, old: _where(over, new, old), fresh, step.state)

    seen = Batch(state.observation, action, step.rewards, step.state.observation, step.terminated, step.truncated)
    # Most steps end no episode, and drawing fresh states at each of them would be a fifth of the rollout.
    return jax.lax.cond(over.any(), renewed, lambda: step.state), seen


def _where(rows: Bool[Array, " b"], new: Array, old: Array) -> Array:
    return jnp.where(rows.reshape(rows.shape + (1,) * (old.ndim - 1)), new, old)
