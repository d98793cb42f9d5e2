"""Bounds that hold whatever the solver did: one Bellman residual, with rounding allowed for.

For any function ``U`` of the state and any weights ``G``, with ``T`` the Bellman operator of the reward ``<G, r>``,

    max_pi <G, V^pi(rho)>  <=  <rho, U> + max_s (T U - U)(s) / (1 - gamma).

With the inequality of ``arnpg.objectives`` this bounds the optimum of every criterion, and shows infeasibility where it
is so. What a policy's own values may err by is known to the kernel that computed them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from arnpg.tabular.host import HostCriterion
from arnpg.tabular.kernel import AbstractKernel

__all__ = ["UNIT", "Infeasibility", "criterion_bound", "single_objective_bound"]

UNIT = 2.0**-53


class Infeasibility(NamedTuple):
    """The proof that no policy meets the constraints.

    Every policy has ``sum_i weights_i (b - C V)_i >= shortfall > 0``. ``policy`` is the one found whose largest
    violation, in units of each objective's range, is least; ``values`` are its values.
    """

    weights: np.ndarray
    shortfall: float
    violations: np.ndarray
    values: np.ndarray
    policy: np.ndarray


def single_objective_bound(
    kernel: AbstractKernel, weights: np.ndarray, state_values: np.ndarray, improved: np.ndarray | None = None
) -> float:
    """An upper bound of ``max_pi <G, V^pi(rho)>`` from any guess ``U`` ``(S,)`` of the optimal value function.

    ``improved`` may hand in ``TU`` ``(S,)`` where it is known already.
    """
    mdp = kernel.mdp
    if improved is None:
        improved = kernel.bellman(np.tensordot(weights, mdp.rewards, 1), state_values)
    largest = float(np.abs(state_values).max())
    size = float(np.abs(weights) @ mdp.reward_sizes)
    rounding = UNIT * ((len(weights) + 2) * size + (kernel.row_length + 4) * largest)
    excess = float((improved - state_values).max()) + rounding
    reach = kernel.horizon if excess > 0 else kernel.least_horizon
    return float(mdp.initial @ state_values) + excess * reach + UNIT * mdp.states * largest


def criterion_bound(
    criterion: HostCriterion, at: np.ndarray, multipliers: np.ndarray, worst_case: np.ndarray, single: float
) -> float:
    """An upper bound of the criterion's optimum: ``c - <lambda, b> + max_pi <g + C^T lambda, V^pi>``."""
    gradient, constant = criterion.support(at, worst_case)
    size = np.abs(gradient) @ np.abs(at) + abs(constant) + multipliers @ np.abs(criterion.thresholds)
    return float(constant - multipliers @ criterion.thresholds + single + 4 * (len(at) + 2) * UNIT * size)
