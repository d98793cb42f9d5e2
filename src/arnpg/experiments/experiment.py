"""What every experiment is: settings, stages that are computed once and kept, and a report drawn from them alone."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import ClassVar, Protocol

import numpy as np

from arnpg.errors import SettingsError
from arnpg.report.figure import Report

__all__ = ["AbstractExperiment", "Memory", "Stages"]

Arrays = Mapping[str, np.ndarray]


class Stages(Protocol):
    """Where an experiment keeps what it has computed; a run folder, or memory."""

    def stage(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """The arrays of a stage: as kept, or computed and kept now."""
        ...


class Memory:
    """Stages that are forgotten with the process."""

    def stage(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """Compute."""
        del name
        return compute()


class AbstractExperiment(abc.ABC):
    """One figure of the paper. Subclasses are frozen dataclasses whose fields are the settings."""

    name: ClassVar[str]
    place: ClassVar[str]
    about: ClassVar[str]

    def __post_init__(self) -> None:
        """Counts are at least one, and a grid holds something."""
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, int) and not isinstance(value, bool) and value < 1:
                raise SettingsError(f"{field.name} must be >= 1, got {value}.")
            if value == ():
                raise SettingsError(f"{field.name} must hold at least one entry, got none.")

    @abc.abstractmethod
    def stages(self) -> tuple[str, ...]:
        """The names of the stages, in the order they run: what progress is counted in."""

    @abc.abstractmethod
    def run(self, stages: Stages) -> Report:
        """Compute what is not there yet, and report."""

    @abc.abstractmethod
    def quick(self) -> AbstractExperiment:
        """The same with settings that take a few seconds."""
