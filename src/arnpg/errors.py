"""The errors of the library; each message names the argument, the value and the cure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = [
    "ArnpgError",
    "EnvironmentFault",
    "InfeasibleError",
    "ModelError",
    "NumericalError",
    "ObjectiveError",
    "SettingsError",
    "StorageError",
]


class ArnpgError(Exception):
    """The base of every error this library raises on purpose."""


class ModelError(ArnpgError, ValueError):
    """A model that is not a Markov decision process, or one that this machine cannot hold."""


class ObjectiveError(ArnpgError, ValueError):
    """A criterion that does not fit the model, or whose function misbehaves."""


class SettingsError(ArnpgError, ValueError):
    """A setting outside its range."""


class StorageError(ArnpgError, OSError):
    """A folder or a file that cannot be written, is in use, is damaged, or belongs to another run."""


class NumericalError(ArnpgError, ArithmeticError):
    """Values that are no longer numbers, with the step at which they appeared."""


class EnvironmentFault(ArnpgError, RuntimeError):
    """An environment that broke its word, or broke; ``details`` are arrays for a file from which to replay it.

    Attributes:
        environment: its index in the batch.
        step: steps of this environment since it was made, the faulty one included; 0 for a reset.
        seed: with which its first reset was seeded.
        action: the last one, as given to the environment; ``None`` for a reset.
        details: the same and ``episode_actions``, ``observation`` and what else is known, as arrays by name.
    """

    def __init__(
        self,
        message: str,
        *,
        environment: int = 0,
        step: int = 0,
        seed: int = 0,
        action: Any = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.environment, self.step, self.seed, self.action = environment, step, seed, action
        self.details = dict(details or {})


class InfeasibleError(ArnpgError):
    """No policy meets the constraints; ``proof`` holds the weights that show it."""

    def __init__(self, message: str, proof: Any = None) -> None:
        super().__init__(message)
        self.proof = proof
