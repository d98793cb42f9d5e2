"""The named error of an environment that broke its word, with all that is needed to come to the same place again.

Episodes may be dropped, and environments begun anew, but not without end: ``Losses`` counts.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from arnpg.errors import EnvironmentFault

__all__ = ["Losses", "environment_fault", "fresh_seed", "told_as"]

RETRIES = 3


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


def told_as(fault: EnvironmentFault, message: str) -> EnvironmentFault:
    """The same fault in other words."""
    place = {"environment": fault.environment, "step": fault.step, "seed": fault.seed}
    return EnvironmentFault(message, **place, action=fault.action, details=fault.details)


class Losses:
    """Episodes of a batch that were lost, and whether there are too many in a row.

    Attributes:
        faults: what happened, in order.
    """

    def __init__(self, count: int, retries: int = RETRIES) -> None:
        self.faults: list[EnvironmentFault] = []
        self._in_a_row, self._retries = np.zeros(count, np.int64), retries

    def add(self, fault: EnvironmentFault) -> None:
        """Count it; raises where the environment has lost more episodes in a row than may be tried again."""
        self.faults.append(fault)
        self._in_a_row[fault.environment] += 1
        times = int(self._in_a_row[fault.environment])
        if times > self._retries:
            raise told_as(
                fault, f"{fault} This is the {times}th episode lost in a row, and {self._retries} are tried again."
            )

    def finished(self, over: np.ndarray) -> None:
        """Where an episode came to a proper end, ``over (b,)``, the count begins anew."""
        self._in_a_row[over] = 0


def fresh_seed(seed: int, attempt: int) -> int:
    """A seed below 2^31 for an environment that is begun anew for the ``attempt``-th time."""
    return int(np.random.SeedSequence((seed, attempt)).generate_state(1)[0] >> 1)
