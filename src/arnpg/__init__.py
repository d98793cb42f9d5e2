"""One policy for several objectives: solve known models exactly, train on simulators and environments.

    mdp = arnpg.MDP(transitions, {"throughput": r1, "battery": r2}, discount=0.8)
    solution = arnpg.solve(mdp, arnpg.Constrained(maximize="throughput", at_least={"battery": 3.0}))

Names are imported when first used, so that ``import arnpg`` and ``arnpg --help`` stay quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arnpg.api import evaluate, solve
    from arnpg.criteria import Concave, Constrained, Linear, MaxMin, ProportionalFair
    from arnpg.errors import (
        ArnpgError,
        InfeasibleError,
        ModelError,
        NumericalError,
        ObjectiveError,
        SettingsError,
    )
    from arnpg.files import load
    from arnpg.objective_check import check_objective
    from arnpg.solution import Solution
    from arnpg.tabular.lattice import Outcomes
    from arnpg.tabular.mdp import MDP
    from arnpg.tabular.policy import TabularPolicy
    from arnpg.tabular.readers import from_gymnasium, load_model, save_model
    from arnpg.tabular.region import achievable_region
    from arnpg.tradeoff import Tradeoff, tradeoff

__version__ = "0.1.0"

_HOME = {
    "check_objective": "objective_check",
    "solve": "api",
    "evaluate": "api",
    "Concave": "criteria",
    "Constrained": "criteria",
    "Linear": "criteria",
    "MaxMin": "criteria",
    "ProportionalFair": "criteria",
    "ArnpgError": "errors",
    "InfeasibleError": "errors",
    "ModelError": "errors",
    "NumericalError": "errors",
    "ObjectiveError": "errors",
    "SettingsError": "errors",
    "Solution": "solution",
    "MDP": "tabular.mdp",
    "Outcomes": "tabular.lattice",
    "TabularPolicy": "tabular.policy",
    "achievable_region": "tabular.region",
    "from_gymnasium": "tabular.readers",
    "load": "files",
    "load_model": "tabular.readers",
    "save_model": "tabular.readers",
    "Tradeoff": "tradeoff",
    "tradeoff": "tradeoff",
}

__all__ = [
    "MDP",
    "ArnpgError",
    "Concave",
    "Constrained",
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
    "achievable_region",
    "check_objective",
    "evaluate",
    "from_gymnasium",
    "load",
    "load_model",
    "save_model",
    "solve",
    "tradeoff",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'arnpg' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"arnpg.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*__all__, "__version__"])
