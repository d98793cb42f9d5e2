"""How a training stands: values against limits, multipliers, pace; for a callback and in words."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from arnpg.loop import Chunk
from arnpg.plan import Plan

__all__ = ["Teller", "TrainingProgress", "progress_text"]


class TrainingProgress(NamedTuple):
    """What a progress callback is shown: means over seeds of the last step, and the pace.

    ``faults`` counts the episodes that all seeds have lost since the call before, to an environment that broke.
    """

    iteration: int
    iterations: int
    values: dict[str, float]
    slack: dict[str, float]
    dual: dict[str, float]
    episode_length: float
    steps_per_second: float
    seconds: float
    faults: int = 0


class Teller:
    """A chunk in words, and for the user's callback."""

    def __init__(self, plan: Plan, show: Callable[[TrainingProgress], None] | None) -> None:
        self._plan, self._show = plan, show
        self._at = time.monotonic()

    def __call__(self, chunk: Chunk) -> str:
        """Tell the callback; the line of a progress bar."""
        now, plan = time.monotonic(), self._plan
        pace = float(chunk.trace.inner.env_steps.sum()) / max(now - self._at, 1e-9)
        self._at = now
        values = chunk.trace.values[:, -1].mean(axis=0).astype(float)
        labels, dual = plan.words.constraint_labels(), chunk.trace.dual[:, -1].mean(axis=0)
        seen = TrainingProgress(
            iteration=chunk.done * plan.step_iterations,
            iterations=chunk.steps * plan.step_iterations,
            values=dict(zip(plan.env.names, values.tolist(), strict=True)),
            slack=dict(zip(labels, plan.criterion.slack(values).tolist(), strict=True)),
            dual=dict(zip(labels, dual.tolist(), strict=False)),
            episode_length=float(np.asarray(chunk.trace.inner.episode_length)[:, -1].mean()),
            steps_per_second=pace,
            seconds=chunk.seconds,
            faults=0 if (lost := chunk.trace.inner.faults) is None else int(np.sum(lost)),
        )
        if self._show is not None:
            self._show(seen)
        return progress_text(seen)


def progress_text(seen: TrainingProgress) -> str:
    """``height 134  swing1 60.1 > 50  swing2 43.2 <= 50  multipliers 0.021, 0  episode 500  61,000 steps/s``."""
    limits: dict[str, str] = {}
    for label, slack in seen.slack.items():
        name, sign, limit = label.rsplit(" ", 2)
        broken = ">" if sign == "<=" else "<"
        limits[name] = f"{limits.get(name, '')} {sign if slack >= 0 else broken} {limit}"
    words = [f"{name} {value:.4g}{limits.get(name, '')}" for name, value in seen.values.items()]
    if seen.dual:
        words.append("multipliers " + ", ".join(f"{value:.3g}" for value in seen.dual.values()))
    pace = (f"episode {seen.episode_length:.0f}", f"{seen.steps_per_second:,.0f} steps/s")
    lost = [f"{seen.faults} episodes lost"] if seen.faults else []
    return "  ".join([*words, *pace, *lost])


