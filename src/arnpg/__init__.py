"""One policy for several objectives: solve known models exactly, train on simulators and environments.

    mdp = arnpg.MDP(transitions, {"throughput": r1, "battery": r2}, discount=0.8)
    solution = arnpg.solve(mdp, arnpg.Constrained(maximize="throughput", at_least={"battery": 3.0}))
    run = arnpg.train(arnpg.envs.Acrobot(), arnpg.Constrained(maximize="height", at_most={"swing1": 50}))

Names are imported when first used, so that ``import arnpg`` and ``arnpg --help`` stay quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arnpg import envs, examples
    from arnpg.api import evaluate, solve
    from arnpg.criteria import Concave, Constrained, Discounted, Linear, MaxMin, ProportionalFair
    from arnpg.errors import (
        ArnpgError,
        EnvironmentFault,
        InfeasibleError,
        ModelError,
        NumericalError,
        ObjectiveError,
        SettingsError,
    )
    from arnpg.evaluation import Evaluation
    from arnpg.files import load
    from arnpg.objective_check import check_objective
    from arnpg.solution import Solution
    from arnpg.tabular.lattice import Outcomes
    from arnpg.tabular.mdp import MDP
    from arnpg.tabular.policy import TabularPolicy
    from arnpg.tabular.readers import from_gymnasium, load_model, save_model
    from arnpg.tabular.region import achievable_region
    from arnpg.tradeoffs import Tradeoff, tradeoff
    from arnpg.trained import TrainedRun
    from arnpg.training import train

__version__ = "0.1.0"

_HOME = {
    "check_objective": "objective_check",
    "solve": "api",
    "evaluate": "api",
    "Concave": "criteria",
    "Constrained": "criteria",
    "Discounted": "criteria",
    "Linear": "criteria",
    "MaxMin": "criteria",
    "ProportionalFair": "criteria",
    "ArnpgError": "errors",
    "EnvironmentFault": "errors",
    "InfeasibleError": "errors",
    "ModelError": "errors",
    "NumericalError": "errors",
    "ObjectiveError": "errors",
    "SettingsError": "errors",
    "Evaluation": "evaluation",
    "Solution": "solution",
    "TrainedRun": "trained",
    "MDP": "tabular.mdp",
    "Outcomes": "tabular.lattice",
    "TabularPolicy": "tabular.policy",
    "achievable_region": "tabular.region",
    "from_gymnasium": "tabular.readers",
    "load": "files",
    "load_model": "tabular.readers",
    "save_model": "tabular.readers",
    "Tradeoff": "tradeoffs",
    "tradeoff": "tradeoffs",
    "train": "training",
}
_PACKAGES = ("envs", "examples")

__all__ = [
    "MDP",
    "ArnpgError",
    "Concave",
    "Constrained",
    "Discounted",
    "EnvironmentFault",
    "Evaluation",
    "InfeasibleError",
    "Linear",
    "MaxMin",
    "ModelError",
    "NumericalError",
    "ObjectiveError",
    "Outcomes",
    "ProportionalFair",
    "SettingsError",
    "Solution",
    "TabularPolicy",
    "Tradeoff",
    "TrainedRun",
    "achievable_region",
    "check_objective",
    "envs",
    "evaluate",
    "examples",
    "from_gymnasium",
    "load",
    "load_model",
    "save_model",
    "solve",
    "tradeoff",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module on first use."""
    if name in _PACKAGES:
        return importlib.import_module(f"arnpg.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'arnpg' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"arnpg.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*__all__, "__version__"])
