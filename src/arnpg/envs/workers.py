"""Gymnasium environments spread over processes; one that dies or hangs is begun anew with other seeds."""

from __future__ import annotations

import collections
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from arnpg.errors import EnvironmentFault, SettingsError

from .environment_source import Source
from .faults import RETRIES, environment_fault, fresh_seed
from .gymnasium_seats import RawStep
from .worker import START_SECONDS, Worker, WorkerLost

__all__ = ["Workers"]


class Workers:
    """``count`` environments in ``workers`` processes, neighbours together.

    Arguments: as of ``Seats``; ``seconds`` after which a process that does not answer is killed.
    """

    def __init__(
        self, source: Source, count: int, width: int | None, time_limit: int, drop: bool, workers: int, seconds: float
    ) -> None:
        self.count, self.width, self._seconds, self._attempts = count, width, seconds, 0
        self._opening = (_recipe(source), width, time_limit, drop)
        self._places = [part for part in np.array_split(np.arange(count), workers) if len(part)]
        self._seeds = [0] * count
        self._steps, self._lengths = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._actions: collections.deque[np.ndarray] = collections.deque(maxlen=time_limit)
        self._last = np.zeros((count, 0), np.float32)
        self._workers = [Worker() for _ in self._places]
        try:
            for worker, places in zip(self._workers, self._places, strict=True):
                self._open(worker, places)
            self.action_space = [self._opened(worker, places) for worker, places in self._pairs()][0]
        except BaseException:
            self.close()
            raise

    def reset(self, seeds: Sequence[int | None]) -> np.ndarray:
        """A fresh episode everywhere; with seeds, what follows a fault is a function of them, too."""
        self._attempts = 0 if any(seed is not None for seed in seeds) else self._attempts
        for index, seed in enumerate(seeds):
            self._seeds[index] = self._seeds[index] if seed is None else seed
            self._steps[index] = self._steps[index] if seed is None else 0
        for worker, places in self._pairs():
            worker.send("reset", [seeds[place] for place in places])
        found = []
        for number in range(len(self._workers)):
            try:
                found.append(self._workers[number].receive(self._seconds))
            except WorkerLost as loss:
                found.append(self._begin_anew(number, str(loss), 1))
        self._actions.clear()
        self._lengths[:] = 0
        self._last = np.concatenate(found)
        return self._last

    def step(self, actions: np.ndarray) -> RawStep:
        """One action each, in all processes at once."""
        self._actions.append(actions)
        self._lengths, self._steps = self._lengths + 1, self._steps + 1
        for worker, places in self._pairs():
            worker.send("step", actions[places])
        found = []
        for number in range(len(self._workers)):
            try:
                found.append(self._workers[number].receive(self._seconds))
            except WorkerLost as loss:
                found.append(self._lost(number, str(loss)))
        arrays = [np.concatenate(parts) for parts in list(zip(*found, strict=True))[:5]]
        infos = [info for part in found for info in part.infos]
        lost = {index: fault for part in found for index, fault in part.lost.items()}
        self._lengths = np.where(arrays[2] | arrays[3], 0, self._lengths)
        self._last = arrays[4]
        return RawStep(arrays[0], arrays[1], arrays[2], arrays[3], arrays[4], infos, lost)

    def renew(self, index: int) -> np.ndarray:
        """Another environment at this place, with another seed."""
        try:
            return self._ask(index, "renew", index)
        except WorkerLost as loss:
            raise self._fault(index, f"when it was begun anew, {loss}") from loss

    def fault(self, index: int, what: str) -> EnvironmentFault:
        """An error in the last step of one of them, by its index in the whole batch."""
        return self._ask(index, "fault", index, what)

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.close()

    def _pairs(self) -> list[tuple[Worker, np.ndarray]]:
        return list(zip(self._workers, self._places, strict=True))

    def _ask(self, index: int, command: str, *arguments: Any) -> Any:
        number = next(n for n, places in enumerate(self._places) if index in places)
        self._workers[number].send(command, *arguments)
        return self._workers[number].receive(self._seconds)

    def _open(self, worker: Worker, places: np.ndarray) -> None:
        recipe, width, time_limit, drop = self._opening
        worker.send("open", sys.path, recipe, len(places), width, time_limit, drop, int(places[0]))

    def _opened(self, worker: Worker, places: np.ndarray) -> Any:
        try:
            return worker.receive(START_SECONDS + self._seconds)
        except WorkerLost as loss:
            raise self._fault(int(places[0]), f"while environments were made, {loss}") from loss

    def _lost(self, number: int, why: str) -> RawStep:
        """The rows of a process that is gone: no steps at all, then fresh episodes."""
        places = self._places[number]
        lost = {int(place): self._fault(int(place), why) for place in places}
        before, size = self._last[places], len(places)
        rewards = np.zeros(size if self.width is None else (size, self.width))
        following = self._begin_anew(number, why, 1)
        over = np.ones(size, bool)
        return RawStep(rewards, before, ~over, over, following, [{}] * size, lost)

    def _begin_anew(self, number: int, why: str, attempt: int) -> np.ndarray:
        """Another process in the place of one that is gone, with other seeds; first observations ``(k, o)``."""
        places = self._places[number]
        if attempt > RETRIES:
            raise self._fault(int(places[0]), f"{why} It was begun anew {RETRIES} times.")
        self._attempts += 1
        for place in places:
            self._seeds[place] = fresh_seed(self._seeds[place], self._attempts)
            self._steps[place] = 0
        self._workers[number].kill()
        self._workers[number] = worker = Worker()
        self._open(worker, places)
        self._opened(worker, places)
        worker.send("reset", [self._seeds[place] for place in places])
        try:
            return worker.receive(self._seconds)
        except WorkerLost as loss:
            return self._begin_anew(number, str(loss), attempt + 1)

    def _fault(self, index: int, what: str) -> EnvironmentFault:
        length = int(self._lengths[index])
        actions = [batch[index] for batch in self._actions][len(self._actions) - length :]
        return environment_fault(
            what, environment=index, seed=self._seeds[index], step=int(self._steps[index]), actions=actions
        )


def _recipe(source: Source) -> bytes:
    import cloudpickle

    module = sys.modules.get(getattr(source.what, "__module__", ""))
    by_value = module is not None and module.__spec__ is None and module.__name__ != "__main__"
    try:
        if by_value:  # made by exec: the other process cannot import it
            cloudpickle.register_pickle_by_value(module)
        return cloudpickle.dumps(source)
    except Exception as error:
        raise SettingsError(
            f"{source.label} cannot be sent to another process ({type(error).__name__}: {error}); "
            "give its class or 'module:Class', or workers=0."
        ) from error
    finally:
        if by_value:
            cloudpickle.unregister_pickle_by_value(module)
