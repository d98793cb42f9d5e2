"""The single-objective solve: policy iteration, the limit of the ARNPG step as alpha goes to 0.

With ``eta = (1 - gamma) / alpha`` a micro step is ``pi' ~ anchor * exp((<G, r> + gamma P V) / alpha)``; for vanishing
``alpha`` it takes the greedy action, and ties keep the anchor's. Every policy evaluated on the way is a point of the
achievable region, so none is wasted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from arnpg.tabular.certificate import single_objective_bound
from arnpg.tabular.kernel import DenseKernel

__all__ = ["Point", "evaluate_point", "policy_iteration"]

TIE = 1e-12


class Point(NamedTuple):
    """A policy, deterministic ``(S,)`` or stochastic ``(S, A)``, its value functions ``(m, S)`` and values ``(m,)``."""

    policy: np.ndarray
    state_values: np.ndarray
    values: np.ndarray


def evaluate_point(kernel: DenseKernel, policy: np.ndarray) -> Point:
    """All ``m`` values of a policy by one factorisation."""
    state_values = kernel.evaluate(policy, kernel.mdp.rewards)
    return Point(policy, state_values, state_values @ kernel.mdp.initial)


def policy_iteration(kernel: DenseKernel, weights: np.ndarray, start: Point) -> Iterator[tuple[Point, float]]:
    """Improve ``<G, V>`` from ``start`` until no action is better.

    Yields each point with the upper bound of ``max_pi <G, V^pi(rho)>`` that its value function implies, ``start``
    first; the last bound is tight up to rounding.
    """
    reward = np.tensordot(weights, kernel.mdp.rewards, 1)
    point = start
    while True:
        guess = weights @ point.state_values
        backed_up = reward + kernel.mdp.discount * kernel.backup(guess)
        yield point, single_objective_bound(kernel, weights, guess, backed_up)
        improved = _greedy(backed_up, point.policy)
        if improved is None:
            return
        candidate = evaluate_point(kernel, improved)
        if point.policy.ndim == 1 and weights @ candidate.values < weights @ point.values - _noise(guess, kernel):
            return
        point = candidate


def _greedy(backed_up: np.ndarray, policy: np.ndarray) -> np.ndarray | None:
    """The greedy actions, keeping the present one where nothing is better; none if nothing changes."""
    best = backed_up.argmax(axis=1)
    if policy.ndim == 2:
        return best
    states = np.arange(len(best))
    margin = TIE * (1 + np.abs(backed_up).max())
    better = backed_up[states, best] > backed_up[states, policy] + margin
    if not better.any():
        return None
    return np.where(better, best, policy)


def _noise(guess: np.ndarray, kernel: DenseKernel) -> float:
    """How far rounding can move a value: beyond it a policy that looks worse is worse, and iteration would cycle."""
    return 1e-13 * float(np.abs(guess).max()) * kernel.horizon
