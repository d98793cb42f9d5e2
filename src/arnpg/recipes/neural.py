"""Named algorithms for environments: a method, an inner loop of neural policies, and the paper's settings; no logic.

Every recipe takes an environment, a bound criterion, the settings of its method, and parts of the inner loop by the
names of its fields (``rollout=Rollout(20, 500)``, ``policy=Network((64, 64))``). The defaults are those of the Acrobot
experiments (Section 5.2): batches of 10 paths of 500 steps, discount .98, networks of 128 x 128, KL at most .003.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from arnpg.envs.env import AbstractEnvironment
from arnpg.inner_loop import AbstractInnerLoop, AbstractMicroSteps, FixedMicroSteps
from arnpg.method import Algorithm
from arnpg.methods import CRPO, EPD, IMD, MONPG, NPGPD, OMDA, SteadyEPD
from arnpg.neural.inner_loop import NeuralInnerLoop
from arnpg.neural.natural_gradient import NaturalGradient, TrustRegion
from arnpg.neural.penalty import AnchorPenalty
from arnpg.neural.radius import ByViolations
from arnpg.neural.values import EpisodeTotal, PathTotal
from arnpg.objectives import Criterion

__all__ = ["METHODS", "arnpg_epd", "arnpg_epd_steady", "arnpg_imd", "arnpg_omda", "crpo", "mo_npg", "npg_pd"]

MicroSteps = int | AbstractMicroSteps


def arnpg_imd(
    env: AbstractEnvironment,
    criterion: Criterion,
    *,
    micro_steps: MicroSteps = 2,
    regularisation: float = 1.0,
    **parts: Any,
) -> Algorithm:
    """Algorithm 2, with the settings of the Acrobot experiment of Appendix C."""
    return Algorithm(IMD(criterion, _rule(micro_steps)), _trust_region(env, regularisation, parts))


def arnpg_epd(
    env: AbstractEnvironment,
    criterion: Criterion,
    *,
    micro_steps: MicroSteps = 2,
    regularisation: float = 1.0,
    dual_step: float = 5e-4,
    **parts: Any,
) -> Algorithm:
    """Algorithm 3, with the settings of Section 5.2."""
    return Algorithm(EPD(criterion, _rule(micro_steps), dual_step), _trust_region(env, regularisation, parts))


def arnpg_epd_steady(
    env: AbstractEnvironment,
    criterion: Criterion,
    *,
    micro_steps: MicroSteps = 2,
    regularisation: float = 1.0,
    dual_step: float = 2e-3,
    damping: float = 0.02,
    margin: float = 0.1,
    clip: float = 0.2,
    **parts: Any,
) -> Algorithm:
    """Not in the paper: EPD steadied for noisy values; the settings are the best of three tried on Acrobot."""
    method = SteadyEPD(criterion, _rule(micro_steps), dual_step, damping, margin, clip)
    return Algorithm(method, _trust_region(env, regularisation, parts))


def arnpg_omda(
    env: AbstractEnvironment,
    criterion: Criterion,
    *,
    micro_steps: MicroSteps = 2,
    regularisation: float = 1.0,
    dual_step: float = 0.01,
    **parts: Any,
) -> Algorithm:
    """Algorithm 4; the paper has no neural run of it, and ``dual_step`` is ours, for totals of about a hundred."""
    return Algorithm(OMDA(criterion, _rule(micro_steps), dual_step), _trust_region(env, regularisation, parts))


def npg_pd(env: AbstractEnvironment, criterion: Criterion, *, dual_step: float = 5e-4, **parts: Any) -> Algorithm:
    """Ding et al. 2020, with the dual step of ARNPG-EPD (Section 5.2)."""
    return Algorithm(NPGPD(criterion, _rule(1), dual_step), _trust_region(env, 0.0, parts))


def crpo(
    env: AbstractEnvironment,
    criterion: Criterion,
    *,
    tolerance: float = 0.5,
    max_kl: tuple[float, ...] = (0.003, 0.006, 0.01),
    **parts: Any,
) -> Algorithm:
    """Xu et al. 2021: ``max_kl`` for each number of broken constraints, damping .006 (Section 5.2)."""
    region = parts.pop("update", TrustRegion(natural_gradient=NaturalGradient(damping=0.006)))
    limits = np.asarray(max_kl, np.float32)[: len(criterion.thresholds) + 1]
    parts["update"] = ByViolations(region, criterion, tolerance, limits)
    return Algorithm(CRPO(criterion, _rule(1), tolerance), _trust_region(env, 0.0, parts))


def mo_npg(env: AbstractEnvironment, criterion: Criterion, **parts: Any) -> Algorithm:
    """A (sub)gradient NPG step (Section 5, Appendix C)."""
    return Algorithm(MONPG(criterion, _rule(1)), _trust_region(env, 0.0, parts))


METHODS: dict[str, Callable[..., Algorithm]] = {
    "arnpg-imd": arnpg_imd,
    "arnpg-epd": arnpg_epd,
    "arnpg-epd-steady": arnpg_epd_steady,
    "arnpg-omda": arnpg_omda,
    "npg-pd": npg_pd,
    "crpo": crpo,
    "mo-npg": mo_npg,
}


def _rule(micro_steps: MicroSteps) -> AbstractMicroSteps:
    """A whole number as data: every ``t_k`` shares one program."""
    if isinstance(micro_steps, AbstractMicroSteps):
        return micro_steps
    FixedMicroSteps(micro_steps)  # refuses what is no whole number
    return FixedMicroSteps(np.asarray(micro_steps))


def _trust_region(env: AbstractEnvironment, regularisation: float, parts: dict[str, Any]) -> AbstractInnerLoop:
    """Micro steps of NPG within a trust region; with ``t_k = 1`` the anchor's penalty plays no part."""
    values = PathTotal() if env.totals == "path" else EpisodeTotal()
    return NeuralInnerLoop(env, **{"penalty": AnchorPenalty(regularisation), "values": values, **parts})
