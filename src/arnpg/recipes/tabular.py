"""Named algorithms for tabular models: a method, an inner loop, and the paper's settings; no logic.

A known model is run with exact gradients, a simulator with ``trajectories`` sampled for each state and action.

The defaults are those of the tabular experiments (Appendix A.1, C.1): ``alpha = (1 - gamma) / eta``, ``t_k = 1``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from arnpg.inner_loop import AbstractInnerLoop, AbstractMicroSteps, FixedMicroSteps, require_positive
from arnpg.method import Algorithm
from arnpg.methods import CRPO, EPD, IMD, MONPG, NPGPD, OMDA
from arnpg.objectives import Criterion
from arnpg.tabular.exact import ExactInnerLoop
from arnpg.tabular.mdp import MDP
from arnpg.tabular.sampled import SampledInnerLoop
from arnpg.tabular.simulator import AbstractSimulator

__all__ = ["METHODS", "arnpg_epd", "arnpg_imd", "arnpg_omda", "crpo", "mo_npg", "npg_pd"]

MicroSteps = int | AbstractMicroSteps
Model = MDP | AbstractSimulator


def arnpg_imd(
    model: Model,
    criterion: Criterion,
    *,
    step_size: float = 4.5,
    regularisation: float | None = None,
    micro_steps: MicroSteps = 1,
    trajectories: int = 20,
) -> Algorithm:
    """Algorithm 2."""
    return Algorithm(IMD(criterion, _rule(micro_steps)), _inner(model, step_size, regularisation, trajectories))


def arnpg_epd(
    model: Model,
    criterion: Criterion,
    *,
    step_size: float = 1.0,
    regularisation: float | None = None,
    dual_step: float = 1.0,
    micro_steps: MicroSteps = 1,
    trajectories: int = 20,
) -> Algorithm:
    """Algorithm 3."""
    return Algorithm(
        EPD(criterion, _rule(micro_steps), dual_step), _inner(model, step_size, regularisation, trajectories)
    )


def arnpg_omda(
    model: Model,
    criterion: Criterion,
    *,
    step_size: float = 0.08,
    regularisation: float | None = 1.0,
    dual_step: float = 2.0,
    micro_steps: MicroSteps = 1,
    trajectories: int = 20,
) -> Algorithm:
    """Algorithm 4."""
    return Algorithm(
        OMDA(criterion, _rule(micro_steps), dual_step), _inner(model, step_size, regularisation, trajectories)
    )


def npg_pd(
    model: Model, criterion: Criterion, *, step_size: float = 1.0, dual_step: float = 1.0, trajectories: int = 20
) -> Algorithm:
    """Ding et al. 2020, with the settings of Appendix A.1."""
    return Algorithm(NPGPD(criterion, _rule(1), dual_step), _inner(model, step_size, None, trajectories))


def crpo(
    model: Model, criterion: Criterion, *, step_size: float = 0.4, tolerance: float = 0.01, trajectories: int = 20
) -> Algorithm:
    """Xu et al. 2021, with the settings of Appendix A.1."""
    return Algorithm(CRPO(criterion, _rule(1), tolerance), _inner(model, step_size, None, trajectories))


def mo_npg(model: Model, criterion: Criterion, *, step_size: float = 0.93, trajectories: int = 20) -> Algorithm:
    """A (sub)gradient NPG step, with the step size of Appendix C.1."""
    return Algorithm(MONPG(criterion, _rule(1)), _inner(model, step_size, None, trajectories))


METHODS: dict[str, Callable[..., Algorithm]] = {
    "arnpg-imd": arnpg_imd,
    "arnpg-epd": arnpg_epd,
    "arnpg-omda": arnpg_omda,
    "npg-pd": npg_pd,
    "crpo": crpo,
    "mo-npg": mo_npg,
}


def _rule(micro_steps: MicroSteps) -> AbstractMicroSteps:
    """One micro step is a program of its own; all other numbers share one."""
    if isinstance(micro_steps, AbstractMicroSteps):
        return micro_steps
    fixed = FixedMicroSteps(micro_steps)
    return fixed if micro_steps == 1 else FixedMicroSteps(np.asarray(micro_steps))


def _inner(model: Model, step_size: float, regularisation: float | None, trajectories: int) -> AbstractInnerLoop:
    require_positive("step_size", step_size)
    alpha: Any = (1 - model.discount) / step_size if regularisation is None else regularisation
    if isinstance(model, MDP):
        return ExactInnerLoop(model, step_size=step_size, regularisation=alpha)
    return SampledInnerLoop(model, step_size, alpha, trajectories)
