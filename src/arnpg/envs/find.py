"""An environment of either world from what a user gives: an object of ours, an id, a class, a function."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from arnpg.errors import SettingsError

from .env import AbstractEnvironment, named
from .host import AbstractHostEnvironment
from .hosts import make_host

__all__ = ["Environment", "find_environment"]

Environment = AbstractEnvironment | AbstractHostEnvironment


def find_environment(env: Any, objectives: Mapping[str, Any] | None = None, **options: Any) -> Environment:
    """``env`` with these objectives; ``options`` are those of ``make_host``."""
    ours = isinstance(env, Environment)
    if ours and options:
        raise SettingsError(f"{next(iter(options))} is for environments by id, class or function; {env!r} is made.")
    if isinstance(env, AbstractEnvironment):
        return env if objectives is None else dataclasses.replace(env, objectives=named(objectives))
    if isinstance(env, AbstractHostEnvironment):
        if objectives is not None:
            raise SettingsError("objectives belong to make_host(env, objectives) where the environment is made by it.")
        return env
    if not (isinstance(env, str) or callable(env) or hasattr(env, "observation_space")):
        raise SettingsError(
            f"env must be an environment of arnpg.envs, a Gymnasium id, class or function, got {type(env).__name__}; "
            "for a known model use arnpg.solve."
        )
    return make_host(env, objectives, **options)
