"""Objectives of host environments: the reward, entries of a reward vector or of ``info``, functions of a transition.

    {"return": "reward", "time": "reward[1]", "cost": "info:cost", "speed": lambda t: abs(t.info["x_velocity"])}

A function sees the whole batch at once, a ``HostTransition`` of arrays with one row for each environment.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from arnpg.errors import ObjectiveError

__all__ = ["HostObjective", "HostTransition", "Infos", "Reader", "bind_objectives", "read_all"]

REWARD = re.compile(r"reward(?:\[(\d+)\])?")


class Infos(Mapping[str, np.ndarray]):
    """The ``info`` of a batch, stacked by key when first asked for; a key that one environment lacks is missing."""

    def __init__(self, infos: Sequence[Mapping[str, Any]]) -> None:
        self.infos = infos
        self._stacked: dict[str, np.ndarray] = {}

    def __getitem__(self, key: str) -> np.ndarray:
        if key not in self._stacked:
            self._stacked[key] = np.stack([np.asarray(info[key]) for info in self.infos])
        return self._stacked[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.infos[0])

    def __len__(self) -> int:
        return len(self.infos[0])


class HostTransition(NamedTuple):
    """One step of ``b`` environments, as an objective sees it.

    Attributes:
        observation: ``(b, o)`` float32, flat, before the step.
        action: ``(b, ...)``, as given to the environments: clipped, decoded.
        reward: ``(b,)``, or ``(b, k)`` where the environments' own reward is a vector.
        next_observation: ``(b, o)``, before any reset.
        terminated: ``(b,)``.
        truncated: ``(b,)``, by the environment or its time limit.
        info: arrays ``(b, ...)`` by key.
    """

    observation: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_observation: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    info: Mapping[str, np.ndarray]


HostObjective = str | Callable[[HostTransition], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Reader:
    """One objective: its name, what was written for it, and the function that it means."""

    name: str
    written: HostObjective
    function: Callable[[HostTransition], Any] = dataclasses.field(compare=False)

    def __call__(self, transition: HostTransition) -> np.ndarray:
        """``(b,)``; raises ``ObjectiveError`` where it is no such thing."""
        count = len(transition.terminated)
        try:
            found = np.asarray(self.function(transition))
        except KeyError as error:
            raise ObjectiveError(
                f"objectives[{self.name!r}] asks for info[{error}], which this step does not have; "
                f"it has {', '.join(transition.info) or 'none'}. The key must be there at every step."
            ) from error
        except Exception as error:
            raise ObjectiveError(
                f"objectives[{self.name!r}] failed on a batch of {count} ({type(error).__name__}: {error}). {BATCHED}"
            ) from error
        if found.shape != (count,):
            raise ObjectiveError(
                f"objectives[{self.name!r}] must give one number for each environment, shape ({count},), "
                f"got shape {found.shape}. {BATCHED}"
            )
        return found


BATCHED = (
    "A function sees all environments at once, arrays with one row each: write np.where(c, a, b) for `a if c else b`, "
    "np.maximum for max, t.observation[:, 0] for the first entry, np.full_like(t.reward, c) for a constant."
)


def read_all(readers: Sequence[Reader], transition: HostTransition) -> np.ndarray:
    """``(b, m)`` float32."""
    found = np.empty((len(transition.terminated), len(readers)), np.float32)
    for index, reader in enumerate(readers):
        found[:, index] = reader(transition)
    return found


def bind_objectives(objectives: Mapping[str, HostObjective], width: int | None) -> tuple[Reader, ...]:
    """Readers of what was written; ``width`` is that of the environment's reward vector, none of a scalar."""
    if not isinstance(objectives, Mapping) or not objectives:
        raise ObjectiveError(
            "objectives must map names to 'reward', 'reward[1]', 'info:key' or functions of a transition, "
            f"got {objectives!r}."
        )
    names = [str(name) for name in objectives]
    if len(set(names)) < len(names) or not all(names):
        raise ObjectiveError(f"objectives must have different names, none of them empty, got {names}.")
    return tuple(Reader(str(name), written, _meaning(name, written, width)) for name, written in objectives.items())


def _meaning(name: str, written: Any, width: int | None) -> Callable[[HostTransition], Any]:
    if callable(written):
        return written
    if not isinstance(written, str):
        raise ObjectiveError(
            f"objectives[{name!r}] must be 'reward', 'reward[1]', 'info:key' or a function, got {written!r}."
        )
    match = REWARD.fullmatch(written)
    if match is None:
        return _InfoEntry(written.removeprefix("info:"))
    index = None if match[1] is None else int(match[1])
    if index is None and width is not None:
        raise ObjectiveError(
            f"objectives[{name!r}] is 'reward', but the reward is a vector of {width}; write 'reward[0]' or another."
        )
    if index is not None and (width is None or index >= width):
        has = "a single number" if width is None else f"a vector of {width}"
        raise ObjectiveError(f"objectives[{name!r}] is {written!r}, but the reward is {has}.")
    return _RewardEntry(index)


@dataclasses.dataclass(frozen=True)
class _RewardEntry:
    index: int | None

    def __call__(self, transition: HostTransition) -> np.ndarray:
        return transition.reward if self.index is None else transition.reward[:, self.index]


@dataclasses.dataclass(frozen=True)
class _InfoEntry:
    key: str

    def __call__(self, transition: HostTransition) -> np.ndarray:
        return transition.info[self.key]
