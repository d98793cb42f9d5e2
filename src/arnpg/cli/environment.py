"""Environments by name on the command line: ``acrobot``, ``Hopper-v5``, or ``package.module:Name`` of your own."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from arnpg.cli.parser import UsageError, did_you_mean
from arnpg.cli.this_folder import see_this_folder

if TYPE_CHECKING:
    from arnpg.envs.find import Environment

__all__ = ["ENVIRONMENTS", "make_environment"]

VERSIONED = re.compile(r"-v\d+$")
ENVIRONMENTS = {
    "acrobot": "height of the tip under limits on two costs (swing1, swing2)",
    "acrobot-rewards": "two rewards for the height of the tip (high, level)",
    "cartpole": "a pole kept upright under a limit on the cart's distance from the centre (upright, distance)",
    "pendulum": "a pendulum swung up under a limit on effort",
}


def make_environment(name: str, objectives: Mapping[str, str] | None = None, **options: Any) -> Environment:
    """The environment of this name; objectives and options are for those of Gymnasium."""
    from arnpg import envs
    from arnpg.envs.find import find_environment

    return find_environment(_named(name, envs), objectives or None, **options)


def _named(name: str, envs: Any) -> Any:
    """An environment of ours, something imported, or an id for Gymnasium."""
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
    if not colon and not VERSIONED.search(name):
        raise UsageError(
            f"{name!r} is not an environment{did_you_mean(name, known)} Known are {', '.join(known)}, Gymnasium's ids "
            "such as Hopper-v5, and your own as package.module:Name."
        )
    if not colon:
        return name
    see_this_folder()
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"{name} cannot be imported: {error}; is it in this folder, or on PYTHONPATH?") from error
    ours = envs.AbstractEnvironment | envs.AbstractHostEnvironment
    if isinstance(found, type) and not issubclass(found, ours):
        return found
    made: Any = found() if callable(found) else found
    if isinstance(made, ours):
        return made
    if not hasattr(made, "observation_space"):
        raise UsageError(f"{name} is a {type(made).__name__}, not an environment; see docs/environments.md.")
    made.close()
    return found
