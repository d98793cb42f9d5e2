"""Means over runs with bootstrap intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Interval", "interval"]

RESAMPLES = 2000


class Interval(NamedTuple):
    """A mean and its bootstrap 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        """``177.3 [163.1, 190.8]``."""
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"


def interval(samples: np.ndarray) -> Interval:
    """The mean of the samples and its bootstrap 95 % interval; NaN where a sample is not finite."""
    samples = np.asarray(samples, float)
    if not np.isfinite(samples).all():
        return Interval(float("nan"), float("nan"), float("nan"))
    draws = np.random.default_rng(0).integers(len(samples), size=(RESAMPLES, len(samples)))
    means = samples[draws].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(samples.mean()), float(low), float(high))
