"""Means over seeds or instances with bootstrap intervals; ``n`` is always shown, a failed run is never dropped."""

from __future__ import annotations

import numpy as np

__all__ = ["above", "band", "interval", "paired", "share"]

RESAMPLES = 2000


def interval(samples: np.ndarray) -> tuple[float, float, float]:
    """The mean of the samples and its bootstrap 95 % interval."""
    samples = np.asarray(samples, float)
    if not np.isfinite(samples).all():
        return float("nan"), float("nan"), float("nan")
    draws = np.random.default_rng(0).integers(len(samples), size=(RESAMPLES, len(samples)))
    means = samples[draws].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(samples.mean()), float(low), float(high)


def band(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, and mean -+ one standard deviation, of samples ``(n, steps)``: the paper's shaded curves."""
    mean, deviation = samples.mean(axis=0), samples.std(axis=0, ddof=1) if len(samples) > 1 else 0 * samples[0]
    return mean, mean - deviation, mean + deviation


def paired(first: np.ndarray, second: np.ndarray) -> str:
    """``first - second`` over pairs, in words."""
    mean, low, high = interval(np.asarray(first) - np.asarray(second))
    return f"{mean:+.4g} [{low:+.4g}, {high:+.4g}], n = {len(first)}"


def above(first: np.ndarray, second: np.ndarray) -> bool | None:
    """Whether ``first`` is above ``second`` over pairs; none where the interval of the difference holds zero."""
    _, low, high = interval(np.asarray(first) - np.asarray(second))
    return True if low > 0 else False if high < 0 else None


def share(flags: np.ndarray) -> str:
    """``17 of 20``."""
    flags = np.asarray(flags, bool)
    return f"{int(flags.sum())} of {len(flags)}"
