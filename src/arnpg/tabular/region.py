"""The achievable region of two objectives: a convex polygon, found by single-objective solves.

Every policy's value vector lies in a convex polytope. Seen in two of the objectives it is a polygon, and the largest
value in a direction is one run of policy iteration. From four directions on, each edge is asked for what lies beyond.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from arnpg.errors import ObjectiveError
from arnpg.tabular.blas import one_blas_thread
from arnpg.tabular.choice import kernel_of
from arnpg.tabular.kernel import AbstractKernel, Point
from arnpg.tabular.mdp import MDP

__all__ = ["Region", "achievable_region", "extreme_point"]


class Region(NamedTuple):
    """The polygon of achievable values: ``names`` of the two objectives, ``vertices`` ``(n, 2)``, counter-clockwise."""

    names: tuple[str, str]
    vertices: np.ndarray


def achievable_region(
    mdp: MDP, names: tuple[str, str] | None = None, *, tolerance: float = 1e-3, max_solves: int = 200
) -> Region:
    """The values of two objectives (default: the first two) that policies can reach.

    Args:
        mdp: the model.
        names: the two objectives.
        tolerance: how much of the region's width may be missed between two vertices.
        max_solves: single-objective solves at most.
    """
    chosen = tuple(names) if names is not None else mdp.names[:2]
    missing = [name for name in chosen if name not in mdp.names]
    if len(chosen) != 2 or missing or chosen[0] == chosen[1]:
        raise ObjectiveError(f"names must be two of {', '.join(mdp.names)}, got {', '.join(map(str, chosen))}.")
    axes = [mdp.names.index(name) for name in chosen]
    farthest = _Farthest(mdp, axes, max_solves)
    with one_blas_thread(mdp.states):
        corners = [farthest(direction) for direction in np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], float)]
        width = np.ptp(corners, axis=0)
        units = np.where(width > 0, width, 1.0)
        vertices: list[np.ndarray] = []
        for start, end in zip(corners, corners[1:] + corners[:1], strict=True):
            vertices += [start, *_between(farthest, start, end, units, tolerance)]
    return Region((chosen[0], chosen[1]), _distinct(np.array(vertices), units))


def extreme_point(mdp: MDP, weights: np.ndarray) -> np.ndarray:
    """The value vector ``(m,)`` of a policy that maximises the weighted sum."""
    kernel = kernel_of(mdp)
    return _climb(kernel, weights, kernel.uniform()).values


def _climb(kernel: AbstractKernel, weights: np.ndarray, start: Point) -> Point:
    """The best point on the way up from ``start``; to nine digits where the solver is iterative."""
    enough = lambda lower, upper: upper - lower <= 1e-9 * (abs(lower) + abs(upper))  # noqa: E731
    points = [step.point for step in kernel.ascend(weights, start, enough) if step.point is not None]
    return max(points, key=lambda point: weights @ point.values)


class _Farthest:
    """The achievable point farthest in a direction of the plane; counts its calls."""

    def __init__(self, mdp: MDP, axes: list[int], calls: int) -> None:
        self._kernel, self._axes, self.left = kernel_of(mdp), axes, calls
        self._last = self._kernel.uniform()

    def __call__(self, direction: np.ndarray) -> np.ndarray:
        self.left -= 1
        weights = np.zeros(self._kernel.mdp.objectives)
        weights[self._axes] = direction
        self._last = _climb(self._kernel, weights, self._last)
        return self._last.values[self._axes]


def _between(
    farthest: _Farthest, start: np.ndarray, end: np.ndarray, units: np.ndarray, tolerance: float
) -> list[np.ndarray]:
    """The vertices beyond the edge from ``start`` to ``end``, in order."""
    edge = (end - start) / units
    length = float(np.hypot(*edge))
    if length < tolerance or farthest.left <= 0:
        return []
    normal = np.array([edge[1], -edge[0]]) / length
    beyond = farthest(normal / units)
    if normal @ ((beyond - start) / units) < tolerance:
        return []
    before = _between(farthest, start, beyond, units, tolerance)
    return [*before, beyond, *_between(farthest, beyond, end, units, tolerance)]


def _distinct(vertices: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Without a vertex that repeats the one before it."""
    step = np.abs((vertices - np.roll(vertices, 1, axis=0)) / units).max(axis=1)
    kept = vertices[step > 1e-9]
    return kept if len(kept) else vertices[:1]
