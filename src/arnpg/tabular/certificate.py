"""Bounds that hold whatever the solver did: one Bellman residual, with rounding allowed for.

For any function ``U`` of the state and any weights ``G``, with ``T`` the Bellman operator of the reward ``<G, r>``,

    max_pi <G, V^pi(rho)>  <=  <rho, U> + max(0, max_s (T U - U)(s)) / (1 - gamma),

and a policy's value lies within ``|r_pi + gamma P_pi U - U| / (1 - gamma)`` of ``U``. With the inequality of
``arnpg.objectives`` this bounds the optimum of every criterion, and shows infeasibility where it is so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from arnpg.tabular.host import HostCriterion
from arnpg.tabular.kernel import DenseKernel, Policy

__all__ = ["Infeasibility", "criterion_bound", "single_objective_bound", "value_error"]

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
    kernel: DenseKernel, weights: np.ndarray, state_values: np.ndarray, backed_up: np.ndarray | None = None
) -> float:
    """An upper bound of ``max_pi <G, V^pi(rho)>`` from any guess ``U`` ``(S,)`` of the optimal value function.

    ``backed_up`` may hand in ``<G, r> + gamma P U`` ``(S, A)`` where it is known already.
    """
    mdp = kernel.mdp
    if backed_up is None:
        backed_up = np.tensordot(weights, mdp.rewards, 1) + mdp.discount * kernel.backup(state_values)
    largest = float(np.abs(state_values).max())
    size = float(np.abs(weights) @ np.abs(mdp.rewards).max(axis=(1, 2)))
    rounding = UNIT * ((len(weights) + 2) * size + (kernel.row_length + 4) * largest)
    excess = max(0.0, float((backed_up.max(axis=1) - state_values).max()) + rounding)
    return float(mdp.initial @ state_values) + excess * kernel.horizon + UNIT * mdp.states * largest


def criterion_bound(
    criterion: HostCriterion, at: np.ndarray, multipliers: np.ndarray, worst_case: np.ndarray, single: float
) -> float:
    """An upper bound of the criterion's optimum: ``c - <lambda, b> + max_pi <g + C^T lambda, V^pi>``."""
    gradient, constant = criterion.support(at, worst_case)
    size = np.abs(gradient) @ np.abs(at) + abs(constant) + multipliers @ np.abs(criterion.thresholds)
    return float(constant - multipliers @ criterion.thresholds + single + 4 * (len(at) + 2) * UNIT * size)


def value_error(kernel: DenseKernel, policy: Policy, rewards: np.ndarray, state_values: np.ndarray) -> np.ndarray:
    """A bound of ``|V_i^pi(rho) - <rho, U_i>|`` for each of the rewards; ``state_values`` is ``(m, S)``."""
    mdp = kernel.mdp
    residual = kernel.under(policy, rewards) + mdp.discount * kernel.step(policy, state_values) - state_values
    largest = np.abs(state_values).max(axis=1)
    sizes = np.abs(rewards).max(axis=(1, 2)) + largest
    rounding = UNIT * (kernel.row_length + mdp.actions + 4) * sizes
    return (np.abs(residual).max(axis=1) + rounding) * kernel.horizon + UNIT * mdp.states * largest
