"""Means over seeds or instances with bootstrap intervals; ``n`` is always shown, a failed run is never dropped."""

from __future__ import annotations

import numpy as np

from arnpg.intervals import interval

__all__ = ["above", "band", "paired", "share"]


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
