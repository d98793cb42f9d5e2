"""The best policy for one reward on a sparse model: inexact policy iteration with a two-sided certificate.

One step from ``U``: the greedy policy ``pi`` and ``TU``, then ``(I - gamma P_pi) U = r_pi`` solved just far enough to
shrink the spread of the residual by ``forcing`` (an inexact Newton step for ``U = TU``). After every step

    U + min(TU - U) / (1 - gamma)  <=  V^pi  <=  V*  <=  U + max(TU - U) / (1 - gamma)        (every state)

whatever ``U`` is, so a solver that errs costs time and never truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from arnpg.tabular.slots import AbstractSlots, choose
from arnpg.tabular.sparse_evaluation import Solved, Solver, solve_system

__all__ = ["Bracket", "policy_iteration"]

_FINEST, _COARSEST = 0.01, 0.5
_PATIENCE = 10


class Bracket(NamedTuple):
    """The greedy policy of ``U``, ``U`` and ``TU``, and the solver that settled in.

    ``low`` and ``high`` bound ``TU - U`` with ``slack`` for rounding; ``final`` where rounding ends the progress.
    """

    policy: Int[np.ndarray, " s"]
    values: Float[np.ndarray, " s"]
    improved: Float[np.ndarray, " s"]
    low: float
    high: float
    slack: float
    final: bool
    solver: Solver

    def width(self, discount: float) -> float:
        """How far apart the two sides are."""
        return (self.high - self.low + 2 * self.slack) / (1 - discount)


def policy_iteration(
    kernel: AbstractSlots,
    reward: Float[np.ndarray, "s a"],
    discount: float,
    *,
    guess: Float[np.ndarray, " s"] | None = None,
    max_steps: int = 500,
    solver: Solver = "auto",
) -> Iterator[Bracket]:
    """Maximise one discounted reward; yields after each greedy improvement, narrower and narrower.

    ``guess`` warm-starts the value function; ``solver`` is asked first for each evaluation.
    """
    values = np.zeros(kernel.n_states) if guess is None else np.array(guess, np.float64)
    forcing, exactness, best, idle = _COARSEST, 1.0, np.inf, 0
    for step in range(1, max_steps + 1):
        policy, improved = kernel.improve(reward, values, discount)
        gain = improved - values
        low, high = float(gain.min()), float(gain.max())
        slack = _rounding(kernel, reward, values)
        final = high - low <= 2 * slack or step == max_steps
        yield Bracket(policy, values, improved, low, high, slack, final, solver)
        if final:
            return
        idle = 0 if high - low < best else idle + 1
        best = min(best, high - low)
        exactness *= 0.1 if idle > 0 and idle % _PATIENCE == 0 else 1.0
        goal = max(0.5 * forcing * (high - low), slack)
        solved, solver = _evaluated(kernel, reward, discount, policy, values, gain, goal, solver)
        values = solved.solution
        pace = (2 * solved.residual / (high - low)) ** (1 / max(solved.products, 1))
        forcing = min(exactness * float(np.clip(pace ** (2 * kernel.n_actions), _FINEST, _COARSEST)), _COARSEST)


def _evaluated(
    kernel: AbstractSlots,
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
        choose(reward, policy),
        guess=values + middle / (1 - discount),
        residual=gain - middle,
        tolerance=goal,
        solver=solver,
    )
    # A solver that had to step in for another one is asked first the next time.
    settled: Solver = "direct" if solved.solver == "direct" else solver
    return solved, settled


def _rounding(kernel: AbstractSlots, reward: Float[np.ndarray, "s a"], values: Float[np.ndarray, " s"]) -> float:
    """Bound the rounding of one entry of ``TU - U``."""
    width = kernel.row_length + 4
    size = max(values.max(), -values.min()) * 2 + max(reward.max(), -reward.min())
    return float(np.finfo(float).eps * width * size)
