"""Environments by name on the command line: ``acrobot``, ``Hopper-v5``, or ``package.module:Name`` of your own."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from arnpg.cli.parser import UsageError, did_you_mean
from arnpg.cli.this_folder import see_this_folder

if TYPE_CHECKING:
    from arnpg.envs.find import Environment

__all__ = ["ENVIRONMENTS", "make_environment", "named"]

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
    if ":" not in name:
        if not named(name):
            raise UsageError(_unknown(name))
        return name
    found = _imported(name)
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


def named(name: str) -> bool:
    """Whether it can be made by its name alone: one of ours, or an id with a version."""
    return name in ENVIRONMENTS or VERSIONED.search(name) is not None


def _unknown(name: str) -> str:
    """A sentence on a name that is no id, with the ids that were perhaps meant."""
    from arnpg.envs.environment_source import known_ids

    with contextlib.suppress(ImportError):
        versions = sorted(known for known in known_ids() if VERSIONED.sub("", known) == name)
        if versions:
            return f"{name!r} lacks its version; perhaps you meant {' or '.join(versions[-2:])}?"
    return (
        f"{name!r} is not an environment{did_you_mean(name, ENVIRONMENTS)} Known are {', '.join(ENVIRONMENTS)}, "
        "Gymnasium's ids such as Hopper-v5, and your own as package.module:Name."
    )


def _imported(name: str) -> Any:
    """``module:Name``, imported."""
    module, _, attribute = name.partition(":")
    see_this_folder()
    try:
        holder = importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"{name} cannot be imported: {error}; is it in this folder, or on PYTHONPATH?") from error
    if not hasattr(holder, attribute):
        raise UsageError(f"module {module} has no {attribute!r}{did_you_mean(attribute, vars(holder))}")
    return getattr(holder, attribute)
