"""The errors of the library; each message names the argument, the value and the cure."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ArnpgError",
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


class InfeasibleError(ArnpgError):
    """No policy meets the constraints; ``proof`` holds the weights that show it."""

    def __init__(self, message: str, proof: Any = None) -> None:
        super().__init__(message)
        self.proof = proof
