"""A criterion for the host solver: plain arrays and plain functions.

Looking up a method on an Equinox module makes a new module each time (60 us), far longer than a formula on ``m``
numbers takes; the solver asks for hundreds. Here each formula of ``arnpg.objectives`` is looked up once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from arnpg.objectives import AbstractObjective, ConcaveFunction, Criterion, Minimum

__all__ = ["HostCriterion", "on_host"]


class HostCriterion(NamedTuple):
    """Maximise ``F(v)`` subject to ``C v >= b``.

    ``F`` is defined where ``domain_rows v + domain_offsets > 0``. A minimum ``F(v) = min_j (R v - e)_j`` has its
    ``parts_rows`` and ``parts_offsets``; for a smooth ``F`` the rows are none. ``trusted``: concave by construction.
    """

    rows: np.ndarray
    thresholds: np.ndarray
    value: Callable[[np.ndarray], float]
    gradient: Callable[[np.ndarray], np.ndarray]
    hessian: Callable[[np.ndarray], np.ndarray]
    domain_rows: np.ndarray
    domain_offsets: np.ndarray
    parts_rows: np.ndarray | None
    parts_offsets: np.ndarray
    trusted: bool

    def slack(self, values: np.ndarray) -> np.ndarray:
        """``C v - b``."""
        return self.rows @ values - self.thresholds

    def violation(self, values: np.ndarray) -> float:
        """``max_i (b - C v)_i``, at least zero."""
        return float(np.max(-self.slack(values), initial=0.0))

    def defined(self, values: np.ndarray) -> bool:
        """Whether ``F`` is defined at the values."""
        return bool((self.domain_rows @ values + self.domain_offsets > 0).all())

    def support(self, at: np.ndarray, worst_case: np.ndarray) -> tuple[np.ndarray, float]:
        """``(g, c)`` with ``F(v) <= c + <g, v>`` for all ``v``: the tangent at ``at``, or the weights of a minimum."""
        if self.parts_rows is None:
            gradient = self.gradient(at)
            return gradient, float(self.value(at) - gradient @ at)
        return worst_case @ self.parts_rows, -float(worst_case @ self.parts_offsets)


def on_host(criterion: Criterion | HostCriterion, objectives: int) -> HostCriterion:
    """The same criterion, with ``m`` objectives, in plain parts."""
    if isinstance(criterion, HostCriterion):
        return criterion
    objective = criterion.objective
    kind: type[AbstractObjective] = type(objective)
    value, gradient, hessian = (functools.partial(f, objective) for f in (kind.value, kind.gradient, kind.hessian))
    least = isinstance(objective, Minimum)
    domain_rows, domain_offsets = objective.domain(objectives)
    return HostCriterion(
        rows=np.asarray(criterion.rows),
        thresholds=np.asarray(criterion.thresholds),
        value=lambda v: float(value(v)),
        gradient=lambda v: np.asarray(gradient(v)),
        hessian=lambda v: np.asarray(hessian(v)),
        domain_rows=domain_rows,
        domain_offsets=domain_offsets,
        parts_rows=np.asarray(objective.rows) if least else None,
        parts_offsets=np.asarray(objective.offsets) if least else np.zeros(0),
        trusted=not isinstance(objective, ConcaveFunction),
    )


def least_of(rows: np.ndarray, offsets: np.ndarray) -> HostCriterion:
    """``max min_j (R v - e)_j`` without constraints."""
    count = rows.shape[1]
    return on_host(Criterion(Minimum(rows, offsets), np.zeros((0, count)), np.zeros(0)), count)
