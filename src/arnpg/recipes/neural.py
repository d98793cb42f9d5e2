"""Named algorithms for environments: a method, an inner loop of neural policies, and the paper's settings; no logic.

Every recipe takes an environment of the device or of the host, a bound criterion, the settings of its method, and parts
of the inner loop by the names of its fields (``rollout=Rollout(20, 500)``, ``policy=Network((64, 64))``).

On the device the defaults are those of the Acrobot experiments (Section 5.3): batches of 10 paths of 500 steps,
discount .98, networks of 128 x 128, KL at most .003. On the host they are those of the Hopper experiments (Appendix
A.3): about 2,048 steps a batch in whole episodes, discount .99, networks of 64 x 64, and primal-dual methods weigh
advantages of unit deviation, so that a dual step is relative to its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from arnpg.envs.find import Environment
from arnpg.envs.host import AbstractHostEnvironment
from arnpg.inner_loop import AbstractInnerLoop, AbstractMicroSteps, FixedMicroSteps
from arnpg.method import Algorithm
from arnpg.methods import CRPO, EPD, FOCOPS, IMD, MONPG, NPGPD, OMDA, SteadyEPD
from arnpg.neural.combine import Each
from arnpg.neural.host_inner_loop import HostInnerLoop
from arnpg.neural.inner_loop import NeuralInnerLoop
from arnpg.neural.natural_gradient import NaturalGradient, TrustRegion
from arnpg.neural.penalty import AnchorPenalty
from arnpg.neural.proximal import Passes, ProximalLoss
from arnpg.neural.radius import ByViolations
from arnpg.neural.rollout import Rollout
from arnpg.neural.values import EpisodeTotal, PathTotal
from arnpg.objectives import Criterion

__all__ = [
    "METHODS",
    "arnpg_epd",
    "arnpg_epd_steady",
    "arnpg_imd",
    "arnpg_omda",
    "arppo_epd",
    "arppo_imd",
    "arppo_omda",
    "crpo",
    "focops",
    "mo_npg",
    "npg_pd",
]

MicroSteps = int | AbstractMicroSteps

ACROBOT_DUAL_STEP = 5e-4
FOCOPS_GAIN = 0.83  # the paper's .01 for a cost limited to 82.748
ARPPO_GAIN = 0.66  # the scripts' .8 times that
LEAST_LIMIT = 1.0  # a limit of 0 has no scale
BATCH = 2048  # steps, for environments of the host
PRIMAL_DUAL = MappingProxyType({"combine": Each()})


def arnpg_imd(
    env: Environment,
    criterion: Criterion,
    *,
    micro_steps: MicroSteps = 2,
    regularisation: float = 1.0,
    **parts: Any,
) -> Algorithm:
    """Algorithm 2, with the settings of the Acrobot experiment of Appendix C."""
    return Algorithm(IMD(criterion, _rule(micro_steps)), _trust_region(env, regularisation, parts))


def arnpg_epd(
    env: Environment,
    criterion: Criterion,
    *,
    micro_steps: MicroSteps = 2,
    regularisation: float = 1.0,
    dual_step: float | None = None,
    **parts: Any,
) -> Algorithm:
    """Algorithm 3, with the settings of Section 5.3."""
    inner = _trust_region(env, regularisation, parts, PRIMAL_DUAL)
    return Algorithm(EPD(criterion, _rule(micro_steps), _dual_step(env, criterion, dual_step)), inner)


def arnpg_epd_steady(
    env: Environment,
    criterion: Criterion,
    *,
    micro_steps: MicroSteps = 2,
    regularisation: float = 1.0,
    dual_step: float = 2e-3,
    damping: float = 0.02,
    margin: float = 0.1,
    clip: float = 0.2,
    scale: float | None = None,
    **parts: Any,
) -> Algorithm:
    """Not in the paper: EPD steadied for noisy values; the settings are the best of three tried on Acrobot."""
    method = SteadyEPD(criterion, _rule(micro_steps), dual_step, damping, margin, clip, scale)
    return Algorithm(method, _trust_region(env, regularisation, parts, PRIMAL_DUAL))


def arnpg_omda(
    env: Environment,
    criterion: Criterion,
    *,
    micro_steps: MicroSteps = 2,
    regularisation: float = 1.0,
    dual_step: float = 0.01,
    **parts: Any,
) -> Algorithm:
    """Algorithm 4; the paper has no neural run of it, and ``dual_step`` is ours, for totals of about a hundred."""
    return Algorithm(OMDA(criterion, _rule(micro_steps), dual_step), _trust_region(env, regularisation, parts))


def npg_pd(env: Environment, criterion: Criterion, *, dual_step: float | None = None, **parts: Any) -> Algorithm:
    """Ding et al. 2020, with the dual step of ARNPG-EPD (Section 5.3)."""
    inner = _trust_region(env, 0.0, parts, PRIMAL_DUAL)
    return Algorithm(NPGPD(criterion, _rule(1), _dual_step(env, criterion, dual_step)), inner)


def crpo(
    env: Environment,
    criterion: Criterion,
    *,
    tolerance: float = 0.5,
    max_kl: tuple[float, ...] = (0.003, 0.006, 0.01),
    **parts: Any,
) -> Algorithm:
    """Xu et al. 2021: ``max_kl`` for each number of broken constraints, damping .006 (Section 5.3)."""
    region = parts.pop("update", TrustRegion(natural_gradient=NaturalGradient(damping=0.006)))
    limits = np.asarray(max_kl, np.float32)[: len(criterion.thresholds) + 1]
    parts["update"] = ByViolations(region, criterion, tolerance, limits)
    return Algorithm(CRPO(criterion, _rule(1), tolerance), _trust_region(env, 0.0, parts, PRIMAL_DUAL))


def mo_npg(env: Environment, criterion: Criterion, **parts: Any) -> Algorithm:
    """A (sub)gradient NPG step (Section 5, Appendix C)."""
    return Algorithm(MONPG(criterion, _rule(1)), _trust_region(env, 0.0, parts))


def arppo_epd(
    env: Environment,
    criterion: Criterion,
    *,
    micro_steps: MicroSteps = 1,
    regularisation: float = 0.05,
    dual_step: float | None = None,
    iterations: int = 0,
    **parts: Any,
) -> Algorithm:
    """Algorithm 3 with a proximal inner loop and the anchor's KL in its loss (Appendix A.3)."""
    step = _dual_step(env, criterion, dual_step, ARPPO_GAIN)
    inner = _proximal(env, regularisation, iterations, parts, PRIMAL_DUAL)
    return Algorithm(EPD(criterion, _rule(micro_steps), step), inner)


def arppo_imd(
    env: Environment,
    criterion: Criterion,
    *,
    micro_steps: MicroSteps = 1,
    regularisation: float = 0.05,
    iterations: int = 0,
    **parts: Any,
) -> Algorithm:
    """Algorithm 2 with the inner loop of ARPPO-EPD."""
    return Algorithm(IMD(criterion, _rule(micro_steps)), _proximal(env, regularisation, iterations, parts, {}))


def arppo_omda(
    env: Environment,
    criterion: Criterion,
    *,
    micro_steps: MicroSteps = 1,
    regularisation: float = 0.05,
    dual_step: float = 0.01,
    iterations: int = 0,
    **parts: Any,
) -> Algorithm:
    """Algorithm 4 with the inner loop of ARPPO-EPD."""
    inner = _proximal(env, regularisation, iterations, parts, {})
    return Algorithm(OMDA(criterion, _rule(micro_steps), dual_step), inner)


def focops(
    env: Environment,
    criterion: Criterion,
    *,
    dual_step: float | None = None,
    cap: float = 2.0,
    iterations: int = 0,
    **parts: Any,
) -> Algorithm:
    """Zhang et al. 2020: the proximal inner loop without anchor, the dual between 0 and ``cap`` (Appendix A.3)."""
    step = _dual_step(env, criterion, dual_step, FOCOPS_GAIN)
    return Algorithm(FOCOPS(criterion, _rule(1), step, cap), _proximal(env, 0.0, iterations, parts, PRIMAL_DUAL))


METHODS: dict[str, Callable[..., Algorithm]] = {
    "arnpg-imd": arnpg_imd,
    "arnpg-epd": arnpg_epd,
    "arnpg-epd-steady": arnpg_epd_steady,
    "arnpg-omda": arnpg_omda,
    "npg-pd": npg_pd,
    "crpo": crpo,
    "mo-npg": mo_npg,
    "arppo-imd": arppo_imd,
    "arppo-epd": arppo_epd,
    "arppo-omda": arppo_omda,
    "focops": focops,
}


def _rule(micro_steps: MicroSteps) -> AbstractMicroSteps:
    """A whole number as data: every ``t_k`` shares one program."""
    if isinstance(micro_steps, AbstractMicroSteps):
        return micro_steps
    FixedMicroSteps(micro_steps)  # refuses what is no whole number
    return FixedMicroSteps(np.asarray(micro_steps))


def _dual_step(env: Environment, criterion: Criterion, given: float | None, gain: float | None = None) -> Any:
    """``eta'``: as given; or ``gain / |b_i|``, by which a multiplier moves ``gain`` where a limit is broken twofold."""
    if given is not None:
        return given
    if gain is None and not isinstance(env, AbstractHostEnvironment):
        return ACROBOT_DUAL_STEP
    return (gain or ARPPO_GAIN) / np.maximum(np.abs(np.asarray(criterion.thresholds, float)), LEAST_LIMIT)


def _trust_region(
    env: Environment, regularisation: float, parts: dict[str, Any], usual: Mapping[str, Any] = MappingProxyType({})
) -> AbstractInnerLoop:
    """Micro steps of NPG within a trust region; with ``t_k = 1`` the anchor's penalty plays no part."""
    return _inner(env, {"penalty": AnchorPenalty(regularisation), **parts}, usual)


def _proximal(
    env: Environment, regularisation: float, iterations: int, parts: dict[str, Any], usual: Mapping[str, Any]
) -> AbstractInnerLoop:
    """Passes of Adam whose loss holds the anchor's KL; the rate falls to 0 over ``iterations`` where they are known."""
    update = Passes(ProximalLoss(regularisation), updates=iterations)
    return _inner(env, {"penalty": AnchorPenalty(0.0), "update": update, **parts}, usual)


def _inner(env: Environment, parts: dict[str, Any], usual: Mapping[str, Any]) -> AbstractInnerLoop:
    """The inner loop of the environment's world; ``usual`` are defaults on the host."""
    if not isinstance(env, AbstractHostEnvironment):
        values = PathTotal() if env.totals == "path" else EpisodeTotal()
        return NeuralInnerLoop(env, **{"values": values, **parts})
    steps = env.time_limit
    rollout = Rollout(max(BATCH // steps, 1), max(BATCH // max(BATCH // steps, 1), steps))
    return HostInnerLoop(env, **{"rollout": rollout, **usual, **parts})
