"""Running mean and spread of what environments show, and observations and rewards brought to unit scale by them.

Plain NumPy in float64, as values: an update gives new statistics and leaves the old ones alone. They are pytrees of
arrays, so that they are carried, saved and restored with everything else of a run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from arnpg.errors import SettingsError

__all__ = ["ReturnScale", "RunningStatistics"]

CLIP = 5.0
SMALLEST_VARIANCE = 1e-8  # of a component that never changes, which is then 0 after the mean is taken away


class RunningStatistics(NamedTuple):
    """Of all vectors ``x`` seen so far, exactly as of one batch of them.

    Attributes:
        count: ``()``, how many.
        mean: ``(o,)``.
        squares: ``(o,)``, the sum of ``(x - mean)^2``.
    """

    count: np.ndarray
    mean: np.ndarray
    squares: np.ndarray

    @classmethod
    def start(cls, size: int) -> RunningStatistics:
        """Of nothing yet: mean 0, variance 1."""
        if size < 1:
            raise SettingsError(f"size must be at least 1, got {size}; state the number of components.")
        return cls(np.zeros(()), np.zeros(size), np.zeros(size))

    @property
    def variance(self) -> np.ndarray:
        """``(o,)``; 1 before there are two vectors."""
        return self.squares / self.count if self.count > 1 else np.ones_like(self.mean)

    def update(self, batch: np.ndarray) -> RunningStatistics:
        """With ``batch (..., o)`` added.

            n' = n + k,   mean' = mean + (k / n') d,   M2' = M2 + M2_batch + (n k / n') d^2,   d = mean_batch - mean

        (Chan, Golub, LeVeque 1983.)
        """
        rows = np.asarray(batch, np.float64).reshape(-1, len(self.mean))
        if not len(rows):
            return self
        count = self.count + len(rows)
        centre = rows.mean(axis=0)
        distance = centre - self.mean
        squares = self.squares + ((rows - centre) ** 2).sum(axis=0)
        return RunningStatistics(
            np.asarray(count),
            self.mean + distance * (len(rows) / count),
            squares + distance**2 * (self.count * len(rows) / count),
        )

    def normalise(self, observations: np.ndarray, clip: float = CLIP) -> np.ndarray:
        """``(x - mean) / sqrt(variance)``, clipped to ``[-clip, clip]``; float32, of the same shape."""
        scaled = (observations - self.mean) / np.sqrt(self.variance + SMALLEST_VARIANCE)
        return np.minimum(np.maximum(scaled, -clip), clip).astype(np.float32)


class ReturnScale(NamedTuple):
    """Rewards divided by the spread of their discounted sums, each objective by its own; no mean is taken away.

    Attributes:
        sums: ``(b, m)``, ``R_t = discount R_{t-1} + r_t`` of the episode so far, for each environment.
        statistics: of all ``R_t``.
    """

    sums: np.ndarray
    statistics: RunningStatistics

    @classmethod
    def start(cls, environments: int, objectives: int) -> ReturnScale:
        """Before the first step."""
        return cls(np.zeros((environments, objectives)), RunningStatistics.start(objectives))

    def update(self, rewards: np.ndarray, over: np.ndarray, discount: float) -> ReturnScale:
        """After a step with ``rewards (b, m)``; where the episode is ``over (b,)`` the sum begins anew."""
        sums = discount * self.sums + rewards
        return ReturnScale(np.where(over[:, None], 0.0, sums), self.statistics.update(sums))

    def normalise(self, rewards: np.ndarray, clip: float = CLIP) -> np.ndarray:
        """``r / sqrt(variance of R)``, clipped; float32, of the same shape."""
        scaled = rewards / np.sqrt(self.statistics.variance + SMALLEST_VARIANCE)
        return np.minimum(np.maximum(scaled, -clip), clip).astype(np.float32)
