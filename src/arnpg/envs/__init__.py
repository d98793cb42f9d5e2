"""Environments: pure functions on the device, and any Gymnasium environment on the host.

Imported when first used: processes that only step Gymnasium environments need no JAX.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .acrobot import Acrobot as Acrobot
    from .cartpole import CartPole as CartPole
    from .check import check_environment as check_environment
    from .env import AbstractEnvironment as AbstractEnvironment
    from .env import BoxActions as BoxActions
    from .env import DiscreteActions as DiscreteActions
    from .env import Step as Step
    from .env import Transition as Transition
    from .host import AbstractHostBatch as AbstractHostBatch
    from .host import AbstractHostEnvironment as AbstractHostEnvironment
    from .host import HostStep as HostStep
    from .host_objectives import HostTransition as HostTransition
    from .hosts import make_host as make_host
    from .pendulum import Pendulum as Pendulum

_HOME = {
    "AbstractEnvironment": "env",
    "AbstractHostBatch": "host",
    "AbstractHostEnvironment": "host",
    "Acrobot": "acrobot",
    "BoxActions": "env",
    "CartPole": "cartpole",
    "DiscreteActions": "env",
    "HostStep": "host",
    "HostTransition": "host_objectives",
    "Pendulum": "pendulum",
    "Step": "env",
    "Transition": "env",
    "check_environment": "check",
    "make_host": "hosts",
}

__all__ = [
    "AbstractEnvironment",
    "AbstractHostBatch",
    "AbstractHostEnvironment",
    "Acrobot",
    "BoxActions",
    "CartPole",
    "DiscreteActions",
    "HostStep",
    "HostTransition",
    "Pendulum",
    "Step",
    "Transition",
    "check_environment",
    "make_host",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'arnpg.envs' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"arnpg.envs.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
