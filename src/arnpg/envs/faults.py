"""The named error of an environment that broke its word, with all that is needed to come to the same place again."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from arnpg.errors import EnvironmentFault

__all__ = ["environment_fault"]


def environment_fault(
    what: str,
    *,
    environment: int,
    seed: int,
    step: int,
    actions: Sequence[Any] | np.ndarray,
    more: Mapping[str, Any] | None = None,
    error: BaseException | None = None,
) -> EnvironmentFault:
    """``what`` happened in this ``step`` after these ``actions`` of the episode; ``more`` goes into the file, too."""
    last = actions[-1] if len(actions) else None
    details = {
        "environment": np.asarray(environment),
        "seed": np.asarray(seed),
        "step": np.asarray(step),
        "episode_actions": np.asarray(actions),
        **{name: np.asarray(value) for name, value in (more or {}).items()},
    }
    if error is not None:
        details["traceback"] = np.asarray("".join(traceback.format_exception(error)))
    place = f"environment {environment}, seed {seed}, step {step}"
    if more and "episode" in more:
        place += f" (episode {more['episode']})"
    message = f"{place}: {what}" + (f" The action was {last}." if last is not None else "")
    return EnvironmentFault(message, environment=environment, step=step, seed=seed, action=last, details=details)
