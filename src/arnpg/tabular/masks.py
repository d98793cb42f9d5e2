"""Models whose actions differ by state, for algorithms that know one set of actions only.

An action that is not allowed is made to do what the first allowed one does: the achievable values stay the same, and a
policy of the wider model is folded back by adding its probability to that action.
"""

from __future__ import annotations

import numpy as np

from arnpg.tabular.mdp import MDP

__all__ = ["folded", "without_mask"]


def without_mask(mdp: MDP) -> MDP:
    """The same model with every action allowed in every state."""
    if mdp.allowed is None:
        return mdp
    source = np.where(mdp.allowed, np.arange(mdp.actions), mdp.allowed.argmax(axis=1)[:, None])
    rewards = np.take_along_axis(mdp.rewards, source[None], axis=2)
    if isinstance(mdp.transitions, np.ndarray):
        transitions = np.take_along_axis(mdp.transitions, source[:, :, None], axis=1)
    else:
        rows = (np.arange(mdp.states)[:, None] * mdp.actions + source).ravel()
        transitions = mdp.transitions[rows]
    return MDP(transitions, rewards, discount=mdp.discount, initial=mdp.initial, names=mdp.names)


def folded(table: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
    """The policy ``(S, A)`` of ``without_mask``'s model as one of the model itself."""
    if allowed is None:
        return table
    kept = np.where(allowed, table, 0.0)
    kept[np.arange(len(table)), allowed.argmax(axis=1)] += np.where(allowed, 0.0, table).sum(axis=1)
    return kept
