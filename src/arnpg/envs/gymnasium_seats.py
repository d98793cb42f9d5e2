"""Gymnasium environments side by side in this process, stepped one after the other, begun anew where they are over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from arnpg.errors import EnvironmentFault, SettingsError

from .gymnasium_seat import Seat, Seen

__all__ = ["RawStep", "Seats", "Stepper"]


class RawStep(NamedTuple):
    """A step before its objectives are read; ``lost`` holds what happened in rows that are no steps, by index."""

    rewards: np.ndarray
    next_observations: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    observations: np.ndarray
    infos: Sequence[dict[str, Any]]
    lost: dict[int, EnvironmentFault]


class Stepper(Protocol):
    """Environments side by side, in this process or in others."""

    action_space: Any

    def reset(self, seeds: Sequence[int | None]) -> np.ndarray: ...  # noqa: D102
    def step(self, actions: np.ndarray) -> RawStep: ...  # noqa: D102
    def renew(self, index: int) -> np.ndarray: ...  # noqa: D102
    def fault(self, index: int, what: str) -> EnvironmentFault: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


class Seats:
    """Environments in this process.

    Arguments: ``source`` makes one; ``count``; ``width`` of the reward vector, none of a number; ``time_limit`` in
    steps; ``drop``, whether an episode with a fault is dropped, and its environment made anew, or the fault raised;
    ``first``, the index of the first in the whole batch.
    """

    def __init__(
        self,
        source: Callable[[], Any],
        count: int,
        width: int | None,
        time_limit: int,
        drop: bool = False,
        first: int = 0,
    ) -> None:
        self.seats: list[Seat] = []
        self.source, self.width, self.drop, self.first, self.attempts = source, width, drop, first, 0
        try:
            for index in range(first, first + count):
                self.seats.append(Seat(source(), index, width, time_limit))
        except BaseException:
            self.close()
            raise
        self.action_space = self.seats[0].env.action_space
        if len({id(seat.env) for seat in self.seats}) < count:
            raise SettingsError("the function gave the same environment twice; it must make a new one at each call.")

    def reset(self, seeds: Sequence[int | None]) -> np.ndarray:
        """A fresh episode everywhere; with seeds, what follows a fault is a function of them, too."""
        self.attempts = 0 if any(seed is not None for seed in seeds) else self.attempts
        return np.stack([seat.reset(seed) for seat, seed in zip(self.seats, seeds, strict=True)])

    def step(self, actions: np.ndarray) -> RawStep:
        """One action each; what is over begins anew."""
        # A Discrete action is a Python number: `action == 1` and lookups in a table must mean what they say.
        given = actions.tolist() if actions.ndim == 1 else actions
        lost: dict[int, EnvironmentFault] = {}
        seen = [self._step(seat, action, lost) for seat, action in zip(self.seats, given, strict=True)]
        following = np.stack([one.observation for one in seen])
        terminated = np.array([one.terminated for one in seen])
        truncated = np.array([one.truncated for one in seen])
        observations = following
        if terminated.any() or truncated.any():
            observations = following.copy()
            for place in np.flatnonzero(terminated | truncated):
                observations[place] = self._begin_anew(self.seats[place], lost)
        rewards = np.array([one.reward for one in seen])
        return RawStep(rewards, following, terminated, truncated, observations, [one.info for one in seen], lost)

    def renew(self, index: int) -> np.ndarray:
        """Another environment at this place, with another seed; ``(o,)``."""
        self.attempts += 1
        return self.seats[index - self.first].renew(self.source(), self.attempts)

    def fault(self, index: int, what: str) -> EnvironmentFault:
        """An error in the last step of one of them, by its index in the whole batch."""
        return self.seats[index - self.first].fault(what, of_step=True)

    def close(self) -> None:
        """Close all."""
        for seat in self.seats:
            seat.close()

    def _step(self, seat: Seat, action: Any, lost: dict[int, EnvironmentFault]) -> Seen:
        try:
            return seat.step(action)
        except EnvironmentFault as fault:
            if not self.drop:
                raise
            lost[seat.index] = fault
            return Seen(0.0 if self.width is None else np.zeros(self.width), seat.last, False, True, {})

    def _begin_anew(self, seat: Seat, lost: dict[int, EnvironmentFault]) -> np.ndarray:
        if seat.index not in lost:
            try:
                return seat.reset()
            except EnvironmentFault as fault:
                if not self.drop:
                    raise
                lost[seat.index] = fault
        return self.renew(seat.index)
