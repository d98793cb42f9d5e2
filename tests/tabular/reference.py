"""The same problems for other solvers: HiGHS and Clarabel over discounted occupancies.

With ``x(s, a) = sum_t gamma^t (1 - gamma) P(s_t = s, a_t = a)`` the achievable values are
``V_i = <x, r_i> / (1 - gamma)`` over the polytope
``sum_a x(t, a) - gamma sum_{s, a} P(t | s, a) x(s, a) = (1 - gamma) rho(t)``, ``x >= 0``.
Values are handed to the solvers in units of ``u_i = max |r_i| / (1 - gamma)``.

Each answer has an ``error``: how far the solver's own residuals allow its optimum to be off.
"""

from __future__ import annotations

from typing import NamedTuple

import clarabel
import numpy as np
import scipy.sparse
from scipy.optimize import linprog

import arnpg
from arnpg.objectives import Criterion, LinearObjective, LogSum, Minimum

LP_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class Optimum(NamedTuple):
    """An optimum with the error that the solver's residuals allow."""

    value: float
    error: float


class Polytope:
    """Occupancies of a model, and values as linear functions of them."""

    def __init__(self, mdp: arnpg.MDP) -> None:
        states, actions = mdp.states, mdp.actions
        inflow = mdp.transitions.reshape(-1, states).T
        self.flow = np.kron(np.eye(states), np.ones(actions)) - mdp.discount * inflow
        self.start = (1 - mdp.discount) * mdp.initial
        sizes = np.abs(mdp.rewards).max(axis=(1, 2))
        self.units = np.where(sizes > 0, sizes, 1.0) / (1 - mdp.discount)
        self.values = mdp.rewards.reshape(mdp.objectives, -1) / (1 - mdp.discount) / self.units[:, None]
        self.ranges = np.maximum(np.ptp(mdp.rewards, axis=(1, 2)) / (1 - mdp.discount), 1e-3 * self.units)


def maximum(
    polytope: Polytope, rows: np.ndarray, offsets: np.ndarray, limits: np.ndarray, floors: np.ndarray
) -> Optimum:
    """``max min_j (R V - e)_j`` subject to ``C V >= b``, by HiGHS; one row ``R`` is a linear objective.

    The error is exact weak duality: with multipliers ``y`` of the flow and ``z, mu >= 0`` of the other rows, the
    optimum is at most ``<y, start> + ... + max(0, largest reduced cost)``, since occupancies sum to one.
    """
    parts, limited = rows * polytope.units @ polytope.values, limits * polytope.units @ polytope.values
    size = max(float(np.abs(parts - offsets[:, None]).max()), 1e-300)
    sizes = np.maximum(np.abs(limited - floors[:, None]).max(axis=1, initial=0.0), 1e-300)
    count = parts.shape[1]
    shifted = (parts - offsets[:, None]) / size
    slack = (limited - floors[:, None]) / sizes[:, None]
    upper = np.vstack([np.hstack([-shifted, np.ones((len(parts), 1))]), np.hstack([-slack, np.zeros((len(slack), 1))])])
    flow = np.hstack([polytope.flow, np.zeros((len(polytope.flow), 1))])
    objective = np.append(np.zeros(count), -1.0)
    bounds = [(0, None)] * count + [(None, None)]
    answer = linprog(objective, upper, np.zeros(len(upper)), flow, polytope.start, bounds, "highs", options=LP_OPTIONS)
    if answer.status == 2:
        return Optimum(-np.inf, 0.0)
    assert answer.status == 0, answer.message
    multipliers, prices = answer.eqlin.marginals, np.maximum(-answer.ineqlin.marginals, 0.0)
    prices[: len(parts)] /= prices[: len(parts)].sum()
    reduced = prices[: len(parts)] @ shifted + prices[len(parts) :] @ slack + multipliers @ polytope.flow
    above = -multipliers @ polytope.start + max(float(reduced.max()), 0.0)
    residual = np.abs(multipliers) @ np.abs(flow @ answer.x - polytope.start)
    residual += prices @ np.maximum(upper @ answer.x, 0.0)
    return Optimum(-answer.fun * size, (abs(above + answer.fun) + residual + 1e-13) * size)


def optimum(mdp: arnpg.MDP, criterion: Criterion) -> Optimum:
    """The optimum of a bound criterion; minus infinity where nothing is feasible."""
    polytope, objective = Polytope(mdp), criterion.objective
    if isinstance(objective, LinearObjective):
        return maximum(polytope, objective.weights[None], np.zeros(1), criterion.rows, criterion.thresholds)
    if isinstance(objective, Minimum):
        return maximum(polytope, objective.rows, objective.offsets, criterion.rows, criterion.thresholds)
    assert isinstance(objective, LogSum), "a user function has its own reference"
    return _log_sum(polytope, objective, criterion)


def least_slack(mdp: arnpg.MDP, rows: np.ndarray, thresholds: np.ndarray) -> Optimum:
    """``max_pi min_i (C V - b)_i / range_i``: negative where the constraints are infeasible."""
    polytope = Polytope(mdp)
    units = np.abs(rows) @ polytope.ranges
    return maximum(polytope, rows / units[:, None], thresholds / units, rows[:0], thresholds[:0])


def square_distance(mdp: arnpg.MDP, target: float, weights: np.ndarray, criterion: Criterion) -> Optimum:
    """``max -sum_i w_i (V_i - t)^2`` under the criterion's constraints, by Clarabel; its variables are ``V_i - t``."""
    polytope = Polytope(mdp)
    scaled = weights * polytope.units**2
    size = float(scaled.max())
    answer = _cone_program(polytope, criterion, 2 * np.diag(scaled) / size, target / polytope.units, None)
    return Optimum(-answer.value * size, answer.error * size)


def _log_sum(polytope: Polytope, objective: LogSum, criterion: Criterion) -> Optimum:
    """``sum_i a_i log((offset + V_i) / u_i)`` with one exponential cone for each, and the units' logarithms back."""
    chosen = np.flatnonzero(objective.weights)
    weights, count = np.asarray(objective.weights)[chosen], len(polytope.values)
    logs = (chosen, weights, float(objective.offset))
    answer = _cone_program(polytope, criterion, np.zeros((count, count)), np.zeros(count), logs)
    return Optimum(-answer.value + float(weights @ np.log(polytope.units[chosen])), answer.error)


def _cone_program(polytope: Polytope, criterion: Criterion, quadratic: np.ndarray, shift: np.ndarray, logs) -> Optimum:
    """Variables ``(x, v, l)`` with ``v = V / units - shift`` and ``l_i <= log(offset / u_i + v_i)``.

    The error adds the gap between primal and dual objective to the residuals times the sum of the multipliers.
    """
    (states, count), m = polytope.flow.shape, len(polytope.values)
    chosen, weights, offset = logs if logs is not None else (np.zeros(0, int), np.zeros(0), 0.0)
    total = count + m + len(chosen)

    def at(place: int, block: np.ndarray) -> np.ndarray:
        return np.pad(block, ((0, 0), (place, total - place - block.shape[1])))

    limited = np.asarray(criterion.rows) * polytope.units
    sizes = np.maximum(np.abs(limited).sum(axis=1), 1e-300)
    floors = np.asarray(criterion.thresholds) / sizes - limited @ shift / sizes
    values = at(0, polytope.values - shift[:, None]) - at(count, np.eye(m))
    blocks = [at(0, polytope.flow), values, at(0, -np.eye(count)), at(count, -limited / sizes[:, None])]
    right = [polytope.start, np.zeros(m), np.zeros(count), -floors]
    cones = [clarabel.ZeroConeT(states + m), clarabel.NonnegativeConeT(count + len(limited))]
    for place, i in enumerate(chosen):
        blocks += [-at(count + m + place, np.eye(1)), np.zeros((1, total)), -at(count + i, np.eye(1))]
        right.append(np.array([0.0, 1.0, offset / polytope.units[i]]))
        cones.append(clarabel.ExponentialConeT())
    cost = np.zeros((total, total))
    cost[count : count + m, count : count + m] = quadratic
    costs = np.concatenate([np.zeros(count + m), -weights])
    return _clarabel(cost, costs, np.vstack(blocks), np.concatenate(right), cones)


def _clarabel(cost: np.ndarray, costs: np.ndarray, rows: np.ndarray, right: np.ndarray, cones: list) -> Optimum:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    sparse = scipy.sparse.csc_matrix
    answer = clarabel.DefaultSolver(sparse(cost), costs, sparse(rows), right, cones, settings).solve()
    prices, sizes = np.abs(np.array(answer.z)), np.abs(np.array(answer.x))
    unit = 1 + np.abs(right).max() + sizes.max()  # Clarabel's residuals are relative to the sizes of their terms
    residuals = unit * answer.r_prim * prices.sum() + (1 + prices.max()) * answer.r_dual * sizes.sum()
    return Optimum(answer.obj_val, abs(answer.obj_val - answer.obj_val_dual) + residuals + 1e-12)
