"""The paper's random constrained MDP (Section 5.1, Appendix A.1): 20 states, 10 actions, discount 0.8, ``b_2 = 3``."""

from __future__ import annotations

import numpy as np

from arnpg.tabular.mdp import MDP

__all__ = ["LIMIT", "random_cmdp"]

LIMIT = 3.0


def random_cmdp(seed: int = 10, states: int = 20, actions: int = 10, discount: float = 0.8) -> MDP:
    """Transitions uniform and normalised, rewards ``r1`` and ``r2`` uniform in [0, 1].

    The default seed gives the instance of the authors' scripts, drawn in their order from NumPy's legacy generator.
    """
    generator = np.random.RandomState(seed)
    transitions = generator.uniform(size=(states * actions, states))
    transitions /= transitions.sum(axis=1, keepdims=True)
    rewards = {name: generator.uniform(size=states * actions).reshape(states, actions) for name in ("r1", "r2")}
    return MDP(transitions.reshape(states, actions, states), rewards, discount=discount)
