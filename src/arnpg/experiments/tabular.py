"""What the tabular experiments share: the paper's instances, batched runs, averages, slopes, panels.

Averages run over the iterates after the first update, as in the theorems, for every method alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from arnpg.api import solve
from arnpg.criteria import AbstractCriterion, Constrained
from arnpg.examples.random_cmdp import LIMIT, random_cmdp
from arnpg.loop import Watch, run_batch
from arnpg.recipes.tabular import METHODS
from arnpg.report.figure import Panel, Series
from arnpg.solution import log_log_slope
from arnpg.tabular.exact import ExactInnerLoop
from arnpg.tabular.mdp import MDP
from arnpg.tabular.simulator import TableSimulator

__all__ = [
    "CMDP",
    "ExactValues",
    "averages",
    "curve",
    "exact_values",
    "instances",
    "objective_of",
    "optimum",
    "panel",
    "points",
    "sampled_values",
    "slope",
]

CMDP = Constrained("r1", at_least={"r2": LIMIT})
SHOWN = 120

Settings = Mapping[str, Any]


class ExactValues(eqx.Module):
    """The true values of an iterate of a sampled run, computed beside it on the known model."""

    model: ExactInnerLoop

    def __call__(self, inner: Any, policy: Any) -> Float[Array, " m"]:
        """``V_{1:m}(rho)``."""
        del inner
        return self.model.evaluate(self.model.evaluated(policy.log_policy), None)[0]


class Optimum(NamedTuple):
    """The certified optimum of an instance and its multipliers."""

    value: float
    multipliers: tuple[float, ...]


def instances(count: int, criterion: AbstractCriterion | None = None) -> list[MDP]:
    """The published instance, then ``count - 1`` more; for constraints only such where the constraint binds."""
    found, seed = [], 10
    while len(found) < count:
        model = random_cmdp(seed)
        if criterion is None or not found or max(optimum(model, criterion).multipliers, default=0.0) > 1e-3:
            found.append(model)
        seed += 1
    return found


def optimum(model: MDP, criterion: AbstractCriterion) -> Optimum:
    """The optimum to a relative gap of 1e-10."""
    solution = solve(model, criterion, gap=1e-10)
    return Optimum(solution.objective, tuple(solution.multipliers.values()))


def exact_values(
    method: str, criterion: AbstractCriterion, models: Sequence[MDP], grid: Sequence[Settings], steps: int
) -> np.ndarray:
    """``V(pi_k)`` for every setting on every model, one compiled call: ``(settings, models, steps, m)``."""
    algorithms = [
        METHODS[method](model, criterion.bind(model.names), **settings) for settings in grid for model in models
    ]
    values = run_batch(algorithms, steps).trace.values
    return values.reshape(len(grid), len(models), *values.shape[1:])


def sampled_values(
    method: str,
    criterion: AbstractCriterion,
    model: MDP,
    grid: Sequence[Settings],
    steps: int,
    seeds: Sequence[int],
) -> np.ndarray:
    """The true ``V(pi_k)`` of sampled runs, all settings and seeds in one call: ``(settings, seeds, steps, m)``."""
    simulator, bound = TableSimulator(model), criterion.bind(model.names)
    algorithms = [METHODS[method](simulator, bound, **settings) for settings in grid for _ in seeds]
    keys = jax.numpy.stack([jax.random.key(seed) for _ in grid for seed in seeds])
    watch = Watch(each=ExactValues(ExactInnerLoop(model, step_size=1.0, regularisation=1.0)))
    values = run_batch(algorithms, steps, keys=keys, watch=watch).rows
    return values.reshape(len(grid), len(seeds), *values.shape[1:])


def averages(series: np.ndarray) -> np.ndarray:
    """Running means along the last axis."""
    return np.cumsum(series, axis=-1) / np.arange(1, series.shape[-1] + 1)


def objective_of(criterion: AbstractCriterion, values: np.ndarray) -> np.ndarray:
    """``F`` of an array of value vectors ``(..., m)``."""
    bound = criterion.bind(("r1", "r2"))
    flat = values.reshape(-1, values.shape[-1])
    with jax.enable_x64(True):
        return np.asarray(jax.vmap(bound.value)(jax.numpy.asarray(flat))).reshape(values.shape[:-1])


def slope(series: np.ndarray) -> float:
    """Of the log-log plot, from the tenth step on."""
    return log_log_slope(series, first=10)


def points(length: int) -> np.ndarray:
    """Indices of the steps that are drawn: all early ones, then evenly in the logarithm."""
    return np.unique(np.round(np.geomspace(1, length, SHOWN)).astype(int)) - 1


def curve(name: str, x: np.ndarray, y: np.ndarray, low: Any = None, high: Any = None, note: str = "") -> Series:
    """A series at the steps that are drawn."""
    chosen = points(len(y))
    pick = lambda line: () if line is None else tuple(np.asarray(line, float)[chosen].tolist())  # noqa: E731
    return Series(name, pick(x), pick(y), pick(low), pick(high), note)


def panel(title: str, x_label: str, y_label: str, series: Sequence[Series], **keywords: Any) -> Panel:
    """Axes with these series."""
    return Panel(title, x_label, y_label, tuple(series), **keywords)
