"""What the Acrobot experiments share: batches of seeds, final values, lines against iterations.

An iteration is one micro step on one batch of the environment, for every method alike. Values are those of the batches
the training collects anyway: totals of a path of 500 steps, averaged over 10 paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from arnpg.criteria import AbstractCriterion
from arnpg.envs.find import Environment
from arnpg.experiments.experiment import Arrays, Stages
from arnpg.experiments.statistics import band
from arnpg.loop import Run, run_batch
from arnpg.method import Algorithm
from arnpg.neural.host_inner_loop import environments_closed
from arnpg.neural.natural_gradient import NaturalGradient, TrustRegion
from arnpg.neural.networks import AbstractPolicy, Network
from arnpg.neural.rollout import Rollout
from arnpg.recipes.neural import METHODS
from arnpg.report.figure import Panel, Series

__all__ = [
    "BLOCK",
    "LABELS",
    "TAIL",
    "Setup",
    "blocks",
    "final",
    "line",
    "panel",
    "parts",
    "policies_of",
    "pooled",
    "run_seeds",
    "train",
]

LABELS = {"arnpg-epd": "ARNPG-EPD", "npg-pd": "NPG-PD", "crpo": "CRPO"}
TAIL = 20  # iterations whose mean is the final value
BLOCK = 10  # seeds a stage
SHOWN = 150


class Setup(NamedTuple):
    """What is trained on what; ``settings`` are those of the method's recipe."""

    method: str
    env: Environment
    criterion: AbstractCriterion
    iterations: int
    settings: Mapping[str, Any]


def parts(hidden: Sequence[int], paths: int, path_steps: int) -> dict[str, Any]:
    """The inner loop's networks and batches, as settings of a recipe."""
    network = Network(tuple(hidden))
    return {"policy": network, "critic": network, "rollout": Rollout(paths, path_steps)}


def region(max_kl: float, damping: float, share: float) -> TrustRegion:
    """The trust region and the part of the batch that its Fisher matrix is taken over."""
    return TrustRegion(max_kl, NaturalGradient(damping=damping, share=share))


def train(setup: Setup, seeds: Sequence[int]) -> Arrays:
    """``values``, ``dual``, ``kl`` and ``length`` of each seed and step; equal seeds start from equal policies."""
    settings = dict(setup.settings)
    algorithm = METHODS[setup.method](setup.env, setup.criterion.bind(setup.env.names), **settings)
    steps = max(setup.iterations // settings.get("micro_steps", 1), 1)
    trace = run_seeds(algorithm, steps, seeds).trace
    length = np.asarray(trace.inner.episode_length)
    return {"values": trace.values, "dual": trace.dual, "kl": trace.inner.kl, "length": length}


def run_seeds(algorithm: Algorithm, steps: int, seeds: Sequence[int]) -> Run:
    """One run a seed, together; environments of the host are closed at the end."""
    keys = jax.numpy.stack([jax.random.key(seed) for seed in seeds])
    with environments_closed(algorithm.inner):
        return run_batch([algorithm] * len(seeds), steps, keys=keys)


def policies_of(found: Run) -> list[AbstractPolicy]:
    """The last policy of each seed."""
    return [jax.tree.map(lambda leaf, row=row: leaf[row], found.last) for row in range(len(found.trace.values))]


def blocks(name: str, seeds: Sequence[int]) -> list[tuple[str, Sequence[int]]]:
    """Stages of ten seeds each, so that an interrupted experiment loses ten at most."""
    cuts = range(0, len(seeds), BLOCK)
    return [(f"{name} seeds {seeds[cut]}-{seeds[cut : cut + BLOCK][-1]}", seeds[cut : cut + BLOCK]) for cut in cuts]


def pooled(stages: Stages, name: str, setup: Setup, seeds: Sequence[int]) -> dict[str, np.ndarray]:
    """All seeds of a run, block by block."""
    found = [stages.stage(stage, lambda some=some: train(setup, some)) for stage, some in blocks(name, seeds)]
    return {key: np.concatenate([arrays[key] for arrays in found]) for key in found[0]}


def final(values: np.ndarray, micro_steps: int = 1) -> np.ndarray:
    """The mean over the last twenty iterations of ``(seeds, steps, ...)``."""
    return values[:, -max(TAIL // micro_steps, 1) :].mean(axis=1)


def line(name: str, series: np.ndarray, micro_steps: int = 1, shaded: bool = False) -> Series:
    """The mean over seeds of ``(seeds, steps)`` against iterations, with one standard deviation where it is shaded."""
    chosen = np.unique(np.linspace(0, series.shape[1] - 1, SHOWN).round().astype(int))
    mean, low, high = (tuple(np.asarray(row, float)[chosen].tolist()) for row in band(series))
    x = tuple(((chosen + 1) * micro_steps).tolist())
    return Series(name, x, mean, low, high) if shaded else Series(name, x, mean)


def panel(title: str, y_label: str, series: Sequence[Series], limit: float | None = None) -> Panel:
    """Axes against iterations, with a limit where there is one."""
    label = "limit" if limit is not None else ""
    return Panel(title, "iterations", y_label, tuple(series), level=limit, level_label=label)
