"""Whether an environment of the device keeps its own promises: shapes, dtypes and objectives, without running it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from arnpg.errors import ObjectiveError, SettingsError

from .env import AbstractEnvironment, BoxActions, EnvState, Transition

__all__ = ["check_device"]


def check_device(env: AbstractEnvironment) -> None:
    """Refuse, by name and with a cure, what would otherwise fail deep inside a compiled program."""
    if isinstance(env.time_limit, bool) or not isinstance(env.time_limit, int) or env.time_limit < 1:
        raise SettingsError(f"time_limit must be a whole number >= 1, got {env.time_limit!r}.")
    key = jax.ShapeDtypeStruct((), jax.random.key(0).dtype)
    action = _action(env)
    state = _told("initial", lambda: jax.eval_shape(env.reset, key))
    _check_observation(env, state)
    after, ended = _told("advance", lambda: jax.eval_shape(env.advance, state.physics, action, key))
    _check_same("advance", state.physics, after)
    if ended.shape != () or ended.dtype != bool:
        raise SettingsError(
            f"advance must return the next state and one truth value, got {ended.dtype} of shape {ended.shape}; "
            "jnp.zeros((), bool) is an episode that goes on."
        )
    seen = Transition(state.physics, state.observation, action, after, state.observation, ended)
    for name, function in env.objectives:
        _check_objective(name, function, seen)


def _action(env: AbstractEnvironment) -> Any:
    if isinstance(env.actions, BoxActions):
        return jax.ShapeDtypeStruct((env.actions.size,), jnp.float32)
    return jax.ShapeDtypeStruct((), jnp.int32)


def _told(method: str, call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        raise SettingsError(f"{method} of the environment failed: {type(error).__name__}: {_short(error)}") from error


def _check_observation(env: AbstractEnvironment, state: EnvState) -> None:
    seen = state.observation
    if seen.shape != (env.observation_size,) or seen.dtype != jnp.float32:
        raise SettingsError(
            f"observe must return {env.observation_size} float32 numbers (observation_size), got {seen.dtype} of shape "
            f"{seen.shape}."
        )


def _check_same(method: str, before: Any, after: Any) -> None:
    kinds = [jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), tree) for tree in (before, after)]
    if kinds[0] != kinds[1]:
        raise SettingsError(f"{method} must keep the state's shapes and dtypes, got {kinds[1]} from {kinds[0]}.")


def _check_objective(name: str, function: Any, seen: Transition) -> None:
    try:
        found = jax.eval_shape(lambda t: jnp.asarray(function(t), jnp.float32), seen)
    except Exception as error:
        raise ObjectiveError(
            f"objectives[{name!r}] failed on a transition: {type(error).__name__}: {_short(error)}"
        ) from error
    if found.shape != ():
        raise ObjectiveError(f"objectives[{name!r}] must give one number for a transition, got shape {found.shape}.")


def _short(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
