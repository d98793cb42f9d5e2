"""Environments by name on the command line: ``acrobot``, or ``package.module:Name`` of your own."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from arnpg.cli.parser import UsageError, did_you_mean

if TYPE_CHECKING:
    from arnpg.envs.env import AbstractEnvironment

__all__ = ["ENVIRONMENTS", "make_environment"]

ENVIRONMENTS = {
    "acrobot": "height of the tip under limits on two costs (swing1, swing2)",
    "acrobot-rewards": "two rewards for the height of the tip (high, level)",
    "cartpole": "a pole kept upright under a limit on the cart's distance from the centre (upright, distance)",
    "pendulum": "a pendulum swung up under a limit on effort",
}


def make_environment(name: str) -> AbstractEnvironment:
    """The environment of this name, with its own objectives."""
    from arnpg import envs
    from arnpg.envs.acrobot import TWO_REWARDS

    known = {
        "acrobot": envs.Acrobot,
        "acrobot-rewards": lambda: envs.Acrobot(TWO_REWARDS),
        "cartpole": envs.CartPole,
        "pendulum": envs.Pendulum,
    }
    if name in known:
        return known[name]()
    module, colon, attribute = name.partition(":")
    if not colon:
        raise UsageError(
            f"{name!r} is not an environment{did_you_mean(name, known)} Known are {', '.join(known)}; "
            "your own is package.module:Name."
        )
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"{name} cannot be imported: {error}; is its folder on PYTHONPATH?") from error
    made = found() if callable(found) else found
    if not isinstance(made, envs.AbstractEnvironment):
        raise UsageError(f"{name} is a {type(made).__name__}, not an environment; see docs/environments.md.")
    return made
