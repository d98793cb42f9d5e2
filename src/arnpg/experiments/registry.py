"""The experiments by name. Nothing here imports JAX until one is loaded, so that a list of them is there at once."""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING, NamedTuple

from arnpg.errors import SettingsError

if TYPE_CHECKING:
    from arnpg.experiments.experiment import AbstractExperiment

__all__ = ["EXPERIMENTS", "Entry", "find", "load"]


class Entry(NamedTuple):
    """Where an experiment is, what it is, and about how many seconds it takes on two cores, compilation included."""

    target: str
    place: str
    about: str
    seconds: float
    quick_seconds: float


EXPERIMENTS = {
    "tabular-cmdp": Entry(
        "arnpg.experiments.tabular_cmdp:TabularCMDP",
        "Section 5.1, Figure 1",
        "average gap and violation with exact gradients: ARNPG-EPD, NPG-PD, CRPO",
        15,
        8,
    ),
    "tabular-cmdp-sampled": Entry(
        "arnpg.experiments.tabular_cmdp_sampled:TabularCMDPSampled",
        "Section 5.2, Figure 2",
        "reward and violation from sampled trajectories: ARNPG-EPD, NPG-PD, CRPO",
        40,
        12,
    ),
    "tabular-sumlog": Entry(
        "arnpg.experiments.tabular_sumlog:TabularSumLog",
        "Appendix C.1, Figure 4",
        "average gap of proportional fairness with exact gradients: ARNPG-IMD, t_k = 1, 2, 5, 10",
        13,
        6,
    ),
    "tabular-sumlog-sampled": Entry(
        "arnpg.experiments.tabular_sumlog_sampled:TabularSumLogSampled",
        "Appendix C.2, Figure 6(a)",
        "proportional fairness from sampled trajectories: ARNPG-IMD, t_k = 1, 2, 5, 10",
        35,
        8,
    ),
    "tabular-maxmin": Entry(
        "arnpg.experiments.tabular_maxmin:TabularMaxMin",
        "Appendix C.1, Figure 5",
        "max-min with exact gradients: ARNPG-OMDA, t_k = 1, 2, 5, 10, and MO-NPG",
        28,
        8,
    ),
    "tabular-maxmin-sampled": Entry(
        "arnpg.experiments.tabular_maxmin_sampled:TabularMaxMinSampled",
        "Appendix C.2, Figure 6(b)",
        "max-min from sampled trajectories: ARNPG-OMDA, t_k = 1, 2, 5, 10, and MO-NPG",
        55,
        12,
    ),
    "acrobot-cmdp": Entry(
        "arnpg.experiments.acrobot_cmdp:AcrobotCMDP",
        "Section 5.3, Figure 3",
        "Acrobot under two costs: ARNPG-EPD, NPG-PD, CRPO",
        1000,
        20,
    ),
    "acrobot-inner-loops": Entry(
        "arnpg.experiments.acrobot_inner_loops:AcrobotInnerLoops",
        "Appendix A.2",
        "Acrobot under two costs: ARNPG-EPD, t_k = 1, 2, 5, 10",
        300,
        20,
    ),
    "acrobot-sumlog": Entry(
        "arnpg.experiments.acrobot_sumlog:AcrobotSumLog",
        "Appendix C, Acrobot-v1",
        "proportional fairness of two rewards on Acrobot: ARNPG-IMD, t_k = 1, 2, 5, 10",
        250,
        20,
    ),
    "acrobot-reliable": Entry(
        "arnpg.experiments.acrobot_reliable:AcrobotReliable",
        "not in the paper",
        "Acrobot under two costs, limits kept run by run: a steady ARNPG-EPD, NPG-PD and CRPO tuned",
        1200,
        30,
    ),
    "hopper": Entry(
        "arnpg.experiments.hopper:Hopper",
        "Appendix A.3",
        "Hopper under a limit on its speed: ARPPO-EPD, FOCOPS, NPG-PD, CRPO",
        2400,
        30,
    ),
    "safety-velocity": Entry(
        "arnpg.experiments.safety_velocity:SafetyVelocity",
        "not in the paper",
        "Hopper under a limit on how often it is too fast: ARPPO-EPD, FOCOPS, NPG-PD",
        3600,
        20,
    ),
    "mo-gymnasium": Entry(
        "arnpg.experiments.mo_gymnasium:MOGymnasium",
        "not in the paper",
        "fairness and max-min on MO-Gymnasium: fishwood, fruit tree, hopper",
        600,
        30,
    ),
}


def find(name: str) -> Entry:
    """The entry of this name, or what was perhaps meant."""
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    near = difflib.get_close_matches(name.replace("_", "-"), EXPERIMENTS, n=2, cutoff=0.5)
    hint = f"perhaps you meant {' or '.join(near)}?" if near else "`arnpg reproduce --list` names them all."
    raise SettingsError(f"{name!r} is not an experiment; {hint}")


def load(name: str) -> type[AbstractExperiment]:
    """The class of an experiment, whose instances are its settings."""
    module, _, attribute = find(name).target.partition(":")
    return getattr(importlib.import_module(module), attribute)
