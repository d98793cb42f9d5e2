"""What the solver needs of a model, dense or sparse: evaluate policies, improve them, mix them, and be rigorous.

The corrective master, the certificate and the search for a feasible policy know this interface and nothing below it.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from arnpg.tabular.mdp import MDP

__all__ = ["AbstractKernel", "Ascent", "Enough", "Point", "Policy"]

Policy = np.ndarray  # (S,) actions of a deterministic policy, or (S, A) probabilities
Enough = Callable[[float, float], bool]  # of a lower and an upper bound of ``max_pi <G, V^pi(rho)>``


class Point(NamedTuple):
    """A policy, its values ``(m,)``, and what its kernel knows beside: value functions, or where the policy goes."""

    policy: Policy
    values: np.ndarray
    detail: np.ndarray


class Ascent(NamedTuple):
    """One step towards ``max_pi <G, V^pi(rho)>``: an upper bound of it, and a point where one was evaluated."""

    point: Point | None
    upper: float


class AbstractKernel(abc.ABC):
    """A model's transitions ``P`` with the linear algebra of policies.

    ``horizon`` bounds ``sum_t gamma^t |P^t|``, rows that sum to 1 + 1e-8 included, ``least_horizon`` is below it;
    ``row_length`` bounds the successors of a state; values that differ by less than ``noise``, relatively, are equal.
    """

    mdp: MDP
    row_length: int
    noise: float

    @property
    def horizon(self) -> float:
        """``1 / (1 - gamma (1 + 1e-8))``, roughly; infinite where rounding alone could make the sum diverge."""
        contraction = self.mdp.discount * self.mdp.row_sums[1]
        return 1 / (1 - contraction) if contraction < 1 else np.inf

    @property
    def least_horizon(self) -> float:
        """``1 / (1 - gamma (1 - 1e-8))``, roughly."""
        return 1 / (1 - self.mdp.discount * self.mdp.row_sums[0])

    @abc.abstractmethod
    def evaluate(self, policy: Policy, guess: np.ndarray | None = None) -> Point:
        """All ``m`` values of a policy; ``guess`` is where the policy is thought to go, ``(S,)``."""

    @abc.abstractmethod
    def error(self, point: Point) -> np.ndarray:
        """A bound of ``|V_i^pi(rho) - values_i|`` for each objective, rounding included; ``(m,)``."""

    @abc.abstractmethod
    def bellman(self, reward: np.ndarray, values: np.ndarray) -> np.ndarray:
        """``(TU)(s) = max_a r(s, a) + gamma (P U)(s, a)`` over allowed actions; ``(S,)``."""

    @abc.abstractmethod
    def ascend(self, weights: np.ndarray, start: Point, enough: Enough) -> Iterator[Ascent]:
        """Improve ``<G, V>`` until no action is better or the bounds are ``enough``; ends with a point."""

    @abc.abstractmethod
    def occupancy(self, point: Point) -> np.ndarray:
        """``d(s) = (1 - gamma) sum_t gamma^t P(s_t = s)``, the state visitation of Section 2; shape ``(S,)``."""

    def uniform(self) -> Point:
        """The policy that takes every allowed action with the same probability."""
        mdp = self.mdp
        if mdp.allowed is None:
            return self.evaluate(np.full((mdp.states, mdp.actions), 1 / mdp.actions))
        return self.evaluate(mdp.allowed / mdp.allowed.sum(axis=1, keepdims=True))
