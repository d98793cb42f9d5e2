"""Trade-off curves: the Pareto surface of two or three objectives, or the optimum as a limit sweeps.

Each point is a certified solution. They share one model's linear algebra and all the points of the achievable region
that were seen before, so that a curve costs a few solves and not one for each of its points.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from arnpg.corrective import solve_corrective
from arnpg.criteria import Constrained, Linear
from arnpg.errors import InfeasibleError, ObjectiveError, SettingsError
from arnpg.solution import Solution
from arnpg.tabular.blas import one_blas_thread
from arnpg.tabular.choice import kernel_of
from arnpg.tabular.column_generation import Columns
from arnpg.tabular.mdp import MDP

__all__ = ["Tradeoff", "tradeoff"]


@dataclasses.dataclass(frozen=True)
class Tradeoff:
    """A curve or a surface.

    Attributes:
        names: the objectives that are traded, or the one whose limit sweeps.
        levels: the limits, ``(n,)``; or the weights of the objectives, ``(n, k)``.
        solutions: one for each level; none where no policy meets the limit.
        swept: whether ``levels`` are limits.
    """

    names: tuple[str, ...]
    levels: np.ndarray
    solutions: tuple[Solution | None, ...]
    swept: bool

    @property
    def certified(self) -> bool:
        """Whether every point is certified, as optimal or as infeasible."""
        return all(found is None or found.certified for found in self.solutions)

    def values(self, name: str) -> np.ndarray:
        """The values of an objective along the curve; not a number where nothing is feasible."""
        return np.array([np.nan if found is None else found.values[name] for found in self.solutions])

    @property
    def objective(self) -> np.ndarray:
        """The optimum along the curve; not a number where nothing is feasible."""
        return np.array([np.nan if found is None else found.objective for found in self.solutions])

    @property
    def bound(self) -> np.ndarray:
        """What no policy exceeds, along the curve; minus infinity where nothing is feasible."""
        return np.array([-np.inf if found is None else found.bound for found in self.solutions])

    def plot(self, path: str | os.PathLike | None = None) -> Any:
        """Draw it; returns the matplotlib figure, saved where a path is given."""
        from arnpg.report.curves import plot_tradeoff

        return plot_tradeoff(self, path)


def tradeoff(
    mdp: MDP,
    over: Sequence[str] | Constrained,
    *,
    sweep: Mapping[str, Sequence[float]] | None = None,
    points: int = 15,
    gap: float = 1e-6,
) -> Tradeoff:
    """How much of one objective another costs.

    Args:
        mdp: the model, dense or sparse.
        over: two or three objectives, whose Pareto surface is found (give costs as ``-name``); or a ``Constrained``
            criterion, one of whose limits sweeps.
        sweep: for a criterion, the name of the limited objective and the values of its limit.
        points: for objectives, how many weights along each edge of the surface.
        gap: the relative gap to certify at each point.
    """
    if isinstance(over, Constrained):
        with one_blas_thread(mdp.states):
            return _swept(mdp, over, sweep or {}, gap)
    names = tuple(over) if isinstance(over, list | tuple) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise ObjectiveError(f"over must be a list of two or three names, or a Constrained criterion, got {over!r}.")
    if sweep is not None:
        raise SettingsError("sweep goes with a Constrained criterion; for objectives give points=...")
    if len(names) not in (2, 3) or len({name.removeprefix("-") for name in names}) < len(names):
        raise ObjectiveError(f"over must name two or three different objectives, got {', '.join(names)}.")
    if isinstance(points, bool) or not isinstance(points, int) or points < 2:
        raise SettingsError(f"points must be a whole number >= 2, got {points!r}.")
    with one_blas_thread(mdp.states):
        return _surface(mdp, names, points, gap)


def _surface(mdp: MDP, names: tuple[str, ...], points: int, gap: float) -> Tradeoff:
    """The best policy for weights all over the simplex, in units of what each objective can gain."""
    signed = [(name.removeprefix("-"), -1.0 if name.startswith("-") else 1.0) for name in names]
    kernel = kernel_of(mdp)
    columns = Columns(kernel.uniform(), kernel.noise)

    def best(shares: np.ndarray) -> Solution:
        weights = {name: sign * float(share) for (name, sign), share in zip(signed, shares, strict=True)}
        return solve_corrective(kernel, Linear(weights), gap=gap, columns=columns)

    corners = [best(row) for row in np.eye(len(names))]
    ranges = [np.ptp([found.values[name] for found in corners]) for name, _ in signed]
    units = np.array([spread if spread > 0 else 1.0 for spread in ranges])
    steps = [row for row in itertools.product(range(points), repeat=len(names)) if sum(row) == points - 1]
    shares = np.maximum(np.array(steps) / (points - 1), 1e-6) / units
    shares /= shares.sum(axis=1, keepdims=True)
    return Tradeoff(names, shares, tuple(best(row) for row in shares), swept=False)


def _swept(mdp: MDP, criterion: Constrained, sweep: Mapping[str, Sequence[float]], gap: float) -> Tradeoff:
    """The optimum for each value of one limit, from the loosest to the tightest."""
    if len(sweep) != 1:
        raise SettingsError(f"sweep must map one limited objective to its limits, got {len(sweep)} objectives.")
    ((name, given),) = sweep.items()
    if (name in criterion.at_least) == (name in criterion.at_most):
        raise SettingsError(f"sweep names {name!r}, which must have one limit in the criterion, at_least or at_most.")
    side = "at_least" if name in criterion.at_least else "at_most"
    try:
        levels = np.asarray(given, float)
    except (TypeError, ValueError):
        levels = np.zeros(0)
    if levels.ndim != 1 or len(levels) == 0 or not np.isfinite(levels).all():
        raise SettingsError(f"sweep[{name!r}] must be a list of finite limits, got {given!r}.")
    kernel = kernel_of(mdp)
    columns = Columns(kernel.uniform(), kernel.noise)
    found: dict[int, Solution | None] = {}
    for place in np.argsort(levels if side == "at_least" else -levels):
        limits = {**getattr(criterion, side), name: float(levels[place])}
        words = dataclasses.replace(criterion, **{side: limits})
        try:
            found[int(place)] = solve_corrective(kernel, words, gap=gap, columns=columns)
        except InfeasibleError:
            found[int(place)] = None
    return Tradeoff((name,), levels, tuple(found[i] for i in range(len(levels))), swept=True)
