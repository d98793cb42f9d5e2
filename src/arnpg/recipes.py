"""Named algorithms for known models: a method, an inner loop, and the paper's settings; no logic.

The defaults are those of the tabular experiments (Appendix A.1, C.1): ``alpha = (1 - gamma) / eta``, ``t_k = 1``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from arnpg.inner_loop import AbstractMicroSteps, FixedMicroSteps
from arnpg.method import Algorithm
from arnpg.methods import CRPO, EPD, IMD, MONPG, NPGPD, OMDA
from arnpg.objectives import Criterion
from arnpg.tabular.exact import ExactInnerLoop
from arnpg.tabular.mdp import MDP

__all__ = ["METHODS", "arnpg_epd", "arnpg_imd", "arnpg_omda", "crpo", "mo_npg", "npg_pd"]

MicroSteps = int | AbstractMicroSteps


def arnpg_imd(
    mdp: MDP,
    criterion: Criterion,
    *,
    step_size: float = 4.5,
    regularisation: float | None = None,
    micro_steps: MicroSteps = 1,
) -> Algorithm:
    """Algorithm 2 with exact gradients."""
    return Algorithm(IMD(criterion, _rule(micro_steps)), _exact(mdp, step_size, regularisation))


def arnpg_epd(
    mdp: MDP,
    criterion: Criterion,
    *,
    step_size: float = 1.0,
    regularisation: float | None = None,
    dual_step: float = 1.0,
    micro_steps: MicroSteps = 1,
) -> Algorithm:
    """Algorithm 3 with exact gradients."""
    return Algorithm(EPD(criterion, _rule(micro_steps), dual_step), _exact(mdp, step_size, regularisation))


def arnpg_omda(
    mdp: MDP,
    criterion: Criterion,
    *,
    step_size: float = 0.08,
    regularisation: float | None = 1.0,
    dual_step: float = 2.0,
    micro_steps: MicroSteps = 1,
) -> Algorithm:
    """Algorithm 4 with exact gradients."""
    return Algorithm(OMDA(criterion, _rule(micro_steps), dual_step), _exact(mdp, step_size, regularisation))


def npg_pd(mdp: MDP, criterion: Criterion, *, step_size: float = 1.0, dual_step: float = 1.0) -> Algorithm:
    """Ding et al. 2020, with the settings of Appendix A.1."""
    return Algorithm(NPGPD(criterion, _rule(1), dual_step), _exact(mdp, step_size, None))


def crpo(mdp: MDP, criterion: Criterion, *, step_size: float = 0.4, tolerance: float = 0.01) -> Algorithm:
    """Xu et al. 2021, with the settings of Appendix A.1."""
    return Algorithm(CRPO(criterion, _rule(1), tolerance), _exact(mdp, step_size, None))


def mo_npg(mdp: MDP, criterion: Criterion, *, step_size: float = 0.93) -> Algorithm:
    """A (sub)gradient NPG step, with the step size of Appendix C.1."""
    return Algorithm(MONPG(criterion, _rule(1)), _exact(mdp, step_size, None))


METHODS: dict[str, Callable[..., Algorithm]] = {
    "arnpg-imd": arnpg_imd,
    "arnpg-epd": arnpg_epd,
    "arnpg-omda": arnpg_omda,
    "npg-pd": npg_pd,
    "crpo": crpo,
    "mo-npg": mo_npg,
}


def _rule(micro_steps: MicroSteps) -> AbstractMicroSteps:
    return micro_steps if isinstance(micro_steps, AbstractMicroSteps) else FixedMicroSteps(micro_steps)


def _exact(mdp: MDP, step_size: float, regularisation: float | None) -> ExactInnerLoop:
    chosen: Any = (1 - mdp.discount) / step_size if regularisation is None else regularisation
    return ExactInnerLoop(mdp, step_size=step_size, regularisation=chosen)
