"""What ``mo-gymnasium`` trains on, and how: an environment, a criterion, a number of environment steps.

ARPPO-IMD climbs the sum of logarithms, and for max-min a smooth minimum: the weights of OMDA add up how far the totals
are apart, and where these begin far apart and policies move slowly they overshoot for most of a run.

The value that counts is the criterion *of the mean totals* of the last policy, which is how one stationary policy is
judged; it is no mean over episodes of what the criterion would say of each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from arnpg.criteria import AbstractCriterion, Concave, MaxMin
from arnpg.envs.host import AbstractHostEnvironment
from arnpg.evaluation import Notion, play
from arnpg.experiments.acrobot import policies_of, run_seeds
from arnpg.experiments.experiment import Arrays
from arnpg.experiments.mo_models import Known, exact_totals
from arnpg.neural.networks import AbstractPolicy
from arnpg.neural.proximal import Passes
from arnpg.neural.rollout import Rollout
from arnpg.neural.values import EpisodeTotal
from arnpg.recipes.neural import arppo_imd

__all__ = ["Problem", "loss", "objective", "smooth_minimum", "train"]

FIRST_SEED = 10_000  # of the episodes that policies are judged by


class Problem(NamedTuple):
    """``criteria`` judge, ``trained`` are what is climbed; ``known`` is the exact model where there is one."""

    env: AbstractHostEnvironment
    criteria: Mapping[str, AbstractCriterion]
    trained: Mapping[str, AbstractCriterion]
    rollout: Rollout
    steps: int
    update: Passes
    networks: Mapping[str, Any]
    known: Known | None = None

    @property
    def iterations(self) -> int:
        """As many batches as the environment steps allow, the first evaluation left out."""
        return max(self.steps // self.rollout.size, 1)


def smooth_minimum(smoothing: float) -> Concave:
    """``-T log sum_i exp(-v_i / T)``, at most ``T log m`` below the minimum: smooth, so that ARNPG-IMD can climb it."""
    return Concave(lambda v: -smoothing * jax.nn.logsumexp(-v / smoothing))


def train(problem: Problem, kind: str, seeds: Sequence[int], episodes: int) -> Arrays:
    """``values`` of every batch, and ``final``, the mean totals of each seed's last policy."""
    update = dataclasses.replace(problem.update, updates=problem.iterations)
    criterion = problem.trained[kind].bind(problem.env.names)
    algorithm = arppo_imd(problem.env, criterion, rollout=problem.rollout, update=update, **problem.networks)
    ran = run_seeds(algorithm, problem.iterations, seeds)
    pairs = zip(policies_of(ran), seeds, strict=True)
    finals = [_judged(problem, policy, episodes, FIRST_SEED + seed) for policy, seed in pairs]
    return {"values": ran.trace.values, "final": np.stack(finals)}


def _judged(problem: Problem, policy: AbstractPolicy, episodes: int, seed: int) -> np.ndarray:
    """Exactly where the model is known, else over fresh episodes with drawn actions."""
    if problem.known is not None:
        return exact_totals(problem.known, policy)
    notion = Notion((EpisodeTotal(),) * len(problem.env.names), problem.env.time_limit, 0.99)
    return play(problem.env, policy, notion, episodes, seed, False)[0].mean(axis=0).astype(float)


def objective(problem: Problem, kind: str, values: np.ndarray) -> np.ndarray:
    """The criterion of value vectors ``(..., m)``."""
    function = problem.criteria[kind].bind(problem.env.names).objective.value
    rows = [float(function(row)) for row in np.asarray(values, float).reshape(-1, values.shape[-1])]
    return np.reshape(rows, values.shape[:-1])


def loss(problem: Problem, kind: str, reached: np.ndarray, optimum: float) -> np.ndarray:
    """The share of the optimum that is missed: of the least value, or of the geometric mean of all values."""
    if isinstance(problem.criteria[kind], MaxMin):
        return 1 - reached / optimum
    return -np.expm1((reached - optimum) / len(problem.env.names))
