"""The same problems for other solvers: HiGHS and Clarabel over discounted occupancies.

With ``x(s, a) = sum_t gamma^t (1 - gamma) P(s_t = s, a_t = a)`` the achievable values are
``V_i = <x, r_i> / (1 - gamma)`` over the polytope ``sum_a x(t, a) - gamma sum_{s, a} P(t | s, a) x(s, a) = (1 - gamma) rho(t)``,
``x >= 0``. Values are handed to the solvers in units of ``u_i = max |r_i| / (1 - gamma)``.

Each answer has an ``error``: how far the solver's own residuals allow its optimum to be off.
"""

from __future__ import annotations

from typing import NamedTuple

import clarabel
import numpy as np
import scipy.sparse
from scipy.optimize import linprog

import arnpg
from arnpg.objectives import ConcaveFunction, Criterion, LinearObjective, LogSum, Minimum

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
        self.units = np.maximum(np.abs(mdp.rewards).max(axis=(1, 2)), 1e-300) / (1 - mdp.discount)
        self.values = mdp.rewards.reshape(mdp.objectives, -1) / (1 - mdp.discount) / self.units[:, None]
        self.ranges = np.maximum(np.ptp(mdp.rewards, axis=(1, 2)) / (1 - mdp.discount), 1e-12 * self.units.max())


def maximum(polytope: Polytope, rows: np.ndarray, offsets: np.ndarray, limits: np.ndarray, floors: np.ndarray) -> Optimum:
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
    if isinstance(objective, LogSum):
        return _log_sum(polytope, objective, criterion)
    assert isinstance(objective, ConcaveFunction)
    raise TypeError("a user function needs its own reference")


def least_slack(mdp: arnpg.MDP, rows: np.ndarray, thresholds: np.ndarray) -> Optimum:
    """``max_pi min_i (C V - b)_i / range_i``: negative where the constraints are infeasible."""
    polytope = Polytope(mdp)
    units = np.abs(rows) @ polytope.ranges
    return maximum(polytope, rows / units[:, None], thresholds / units, rows[:0], thresholds[:0])


def square_distance(mdp: arnpg.MDP, targets: np.ndarray, weights: np.ndarray, criterion: Criterion) -> Optimum:
    """``max -sum_i w_i (V_i - t_i)^2`` under the criterion's constraints, by Clarabel."""
    polytope = Polytope(mdp)
    scaled = weights * polytope.units**2
    size = max(float(scaled.max()), 1e-300)
    quadratic = 2 * np.diag(scaled) / size
    linear = -2 * scaled * (targets / polytope.units) / size
    answer = _cone_program(polytope, criterion, quadratic, linear, None)
    constant = float(weights @ targets**2)
    return Optimum(-answer.value * size - constant, answer.error * size + 1e-13 * constant)


def _log_sum(polytope: Polytope, objective: LogSum, criterion: Criterion) -> Optimum:
    """``sum_i a_i log((offset + V_i) / u_i)`` with one exponential cone for each, and the units' logarithms back."""
    chosen = np.flatnonzero(objective.weights)
    weights = np.asarray(objective.weights)[chosen]
    count = len(polytope.values)
    answer = _cone_program(
        polytope, criterion, np.zeros((count, count)), np.zeros(count), (chosen, weights, float(objective.offset))
    )
    return Optimum(-answer.value + float(weights @ np.log(polytope.units[chosen])), answer.error)


def _cone_program(polytope, criterion, quadratic, linear, logs) -> Optimum:
    """Variables ``(x, v, l)`` with ``v = V / units`` and ``l_i <= log(offset / u_i + v_i)``."""
    states, count = polytope.flow.shape
    m = len(polytope.values)
    chosen, weights, offset = logs if logs is not None else (np.zeros(0, int), np.zeros(0), 0.0)
    total = count + m + len(chosen)
    pad = lambda block, at: np.hstack([np.zeros((len(block), at)), block, np.zeros((len(block), total - at - block.shape[1]))])  # noqa: E731
    limited = np.asarray(criterion.rows) * polytope.units
    sizes = np.maximum(np.abs(limited).sum(axis=1), 1e-300)
    blocks = [
        pad(polytope.flow, 0),
        pad(polytope.values, 0) - pad(np.eye(m), count),
        pad(-np.eye(count), 0),
        pad(-limited / sizes[:, None], count),
    ]
    right = [polytope.start, np.zeros(m), np.zeros(count), -np.asarray(criterion.thresholds) / sizes]
    cones = [clarabel.ZeroConeT(states + m), clarabel.NonnegativeConeT(count + len(limited))]
    for place, i in enumerate(chosen):
        blocks += [-pad(np.eye(1), count + m + place), np.zeros((1, total)), -pad(np.eye(1), count + i)]
        right.append(np.array([0.0, 1.0, offset / polytope.units[i]]))
        cones.append(clarabel.ExponentialConeT())
    cost = np.zeros((total, total))
    cost[count : count + m, count : count + m] = quadratic
    costs = np.concatenate([np.zeros(count), linear, -weights])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(
        scipy.sparse.csc_matrix(cost), costs, scipy.sparse.csc_matrix(np.vstack(blocks)), np.concatenate(right), cones, settings
    )
    answer = solver.solve()
    if "Infeasible" in str(answer.status):
        return Optimum(np.inf, 0.0)
    prices = np.abs(np.array(answer.z)).max(initial=1.0)
    error = abs(answer.obj_val - answer.obj_val_dual) + 10 * (answer.r_prim * prices + answer.r_dual)
    return Optimum(answer.obj_val, error + 1e-12)
