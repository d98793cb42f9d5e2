"""What a reader of a training's numbers should know: episodes without end or lost, seeds that do not lead back."""

from __future__ import annotations

import numpy as np

from arnpg.envs.random_play import CURE
from arnpg.evaluation import Notion
from arnpg.neural.values import Discounted, PathTotal
from arnpg.trained import TAIL, TrainingTrace

__all__ = ["not_reproducible", "training_notes"]


def training_notes(trace: TrainingTrace, notion: Notion, time_limit: int, parted: str | None) -> tuple[str, ...]:
    """Sentences, none where there is nothing to say; ``parted`` is what ``seed_forgotten`` found."""
    found = [_cut_off(trace, notion, time_limit), _lost(trace), None if parted is None else not_reproducible(parted)]
    return tuple(text for text in found if text is not None)


def not_reproducible(parted: str) -> str:
    """Of an environment that does not go the same way under the same seed."""
    return (
        f"not reproducible: under one seed the environment goes two ways ({parted}), so that the same call will not "
        f"lead to the same policy, nor will a run that was resumed. {CURE}"
    )


def _lost(trace: TrainingTrace) -> str | None:
    count = int(trace.faults.sum())
    if not count:
        return None
    broken = int((trace.faults.sum(axis=0) > 0).sum())
    return (
        f"faults: the environment broke {count} times, in {broken} of {len(trace)} steps of the method. Those episodes "
        "count in no value, and what broke is no part of them; if long episodes break more often, values lean to "
        "short ones."
    )


def _cut_off(trace: TrainingTrace, notion: Notion, time_limit: int) -> str | None:
    """The bias bound where no episode ended before its time limit: beyond ``H`` steps lies ``discount^H``."""
    tail = trace.iterations > trace.iterations[-1] - TAIL
    lengths = np.asarray(trace.episode_length)[:, tail]
    # A mean of equal whole numbers, up to rounding in float32.
    if all(isinstance(value, PathTotal) for value in notion.values) or lengths.min() < time_limit * (1 - 1e-6):
        return None
    own = {value.at for value in notion.values if isinstance(value, Discounted) and value.at is not None}
    shares = ", ".join(f"{d:g}^{time_limit} = {d**time_limit:.2g}" for d in sorted({notion.discount, *own}))
    return (
        f"truncated: no episode of the last {TAIL} iterations ended before the time limit of {time_limit} steps, and "
        "nothing beyond it counts. Of a discounted value that leaves out at most this share of the largest possible: "
        f"{shares}."
    )
