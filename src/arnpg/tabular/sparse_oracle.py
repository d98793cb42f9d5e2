"""The best policy for one reward on a sparse model: inexact policy iteration with a two-sided certificate.

One step from ``U``: the greedy policy ``pi`` and ``TU``, then ``(I - gamma P_pi) U = r_pi`` solved just far enough to
shrink the spread of the residual by ``forcing`` (an inexact Newton step for ``U = TU``). It ends when the bracket

    U + min(TU - U) / (1 - gamma)  <=  V^pi  <=  V*  <=  U + max(TU - U) / (1 - gamma)        (every state)

is narrow enough. Both sides hold for any ``U`` whatsoever, so a solver that errs costs time and never truth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from arnpg.errors import NumericalError
from arnpg.tabular.slots import SlotKernel
from arnpg.tabular.sparse_evaluation import Solved, Solver, solve_system

__all__ = ["OracleResult", "best_policy"]

_FINEST, _COARSEST = 0.01, 0.5
_PATIENCE = 10


class OracleResult(NamedTuple):
    """A policy with a bracket: ``upper - width <= V^policy <= V* <= upper`` in every state, rounding included.

    ``steps`` greedy improvements were made, with ``products`` policy products between them.
    """

    policy: Int[np.ndarray, " s"]
    upper: Float[np.ndarray, " s"]
    width: float
    steps: int
    products: int
    solver: Solver


def best_policy(
    kernel: SlotKernel,
    reward: Float[np.ndarray, "s a"],
    discount: float,
    *,
    guess: Float[np.ndarray, " s"] | None = None,
    tolerance: float = 1e-8,
    max_steps: int = 500,
    solver: Solver = "auto",
    watch: Callable[[Int[np.ndarray, " s"], float], bool] | None = None,
) -> OracleResult:
    """Maximise one discounted reward until the bracket is at most ``tolerance`` wide, or as narrow as rounding lets.

    ``guess`` warm-starts the value function. ``watch(policy, width)`` sees every greedy policy and may end the solve
    by returning True; what is returned is certified as it stands.
    """
    values = np.zeros(kernel.n_states) if guess is None else np.array(guess, np.float64)
    scale = 1 / (1 - discount)
    forcing, exactness, best_width, idle, products = _COARSEST, 1.0, np.inf, 0, 0
    for step in range(1, max_steps + 1):
        policy, improved = kernel.improve(reward, values, discount)
        gain = improved - values
        low, high = float(gain.min()), float(gain.max())
        slack = _rounding(kernel, reward, values)
        width = (high - low + 2 * slack) * scale
        done = width <= tolerance or high - low <= 2 * slack or (watch is not None and watch(policy, width))
        if done or step == max_steps:
            return OracleResult(policy, values + (high + slack) * scale, width, step, products, solver)
        idle = 0 if width < best_width else idle + 1
        best_width = min(best_width, width)
        exactness *= 0.1 if idle > 0 and idle % _PATIENCE == 0 else 1.0
        goal = max(0.5 * forcing * (high - low), 0.2 * tolerance / scale)
        solved, solver = _evaluated(kernel, reward, discount, policy, values, gain, goal, solver)
        values, products = solved.solution, products + solved.products
        pace = (2 * solved.residual / (high - low)) ** (1 / max(solved.products, 1))
        forcing = min(exactness * float(np.clip(pace ** (2 * kernel.n_actions), _FINEST, _COARSEST)), _COARSEST)
    raise NumericalError(f"max_steps must be at least 1, got {max_steps}")


def _evaluated(
    kernel: SlotKernel,
    reward: Float[np.ndarray, "s a"],
    discount: float,
    policy: Int[np.ndarray, " s"],
    values: Float[np.ndarray, " s"],
    gain: Float[np.ndarray, " s"],
    goal: float,
    solver: Solver,
) -> tuple[Solved, Solver]:
    """Evaluate the greedy policy to a residual of ``goal``, from the middle of the present bracket."""
    middle = 0.5 * float(gain.min() + gain.max())
    solved = solve_system(
        kernel.chain(policy),
        discount,
        kernel.choose(reward, policy),
        guess=values + middle / (1 - discount),
        residual=gain - middle,
        tolerance=goal,
        solver=solver,
    )
    # A solver that had to step in for another one is asked first the next time.
    settled: Solver = "direct" if solved.solver == "direct" else solver
    return solved, settled


def _rounding(kernel: SlotKernel, reward: Float[np.ndarray, "s a"], values: Float[np.ndarray, " s"]) -> float:
    """Bound the rounding of one entry of ``TU - U``."""
    width = int(np.diff(kernel.matrix.indptr).max(initial=0)) + 4
    size = max(values.max(), -values.min()) * 2 + max(reward.max(), -reward.min())
    return float(np.finfo(float).eps * width * size)
