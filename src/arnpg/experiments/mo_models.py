"""Two of MO-Gymnasium's environments as known models, whose values are exactly the totals of an episode.

A total is undiscounted and an episode ends after ``T`` steps, so that states are pairs ``(t, s)``, and rewards at ``t``
are divided by ``discount^t``: the model's discount then cancels, and

    V_i = E sum_t discount^t ( r_i(s_t, a_t) / discount^t ) = E sum_{t < T} r_i(s_t, a_t).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from arnpg.api import evaluate
from arnpg.neural.networks import AbstractPolicy
from arnpg.tabular.mdp import MDP

__all__ = ["Known", "episode_model", "exact_totals", "fishwood", "fruit_tree"]

DISCOUNT = 0.98  # any would do; 200 steps scale rewards by 56 at most
WOODS = 1
CHANCES = {"fish": 0.1, "wood": 0.9}  # fishwood-v0's defaults
TIME = 200  # steps of an episode of fishwood-v0
OVER = "over"

Outcome = tuple[Sequence[Any], Sequence[float], Mapping[str, float]]


class Known(NamedTuple):
    """A model over ``(t, s)``, and what the environment shows in each of its states."""

    mdp: MDP
    observations: np.ndarray


def episode_model(
    step: Callable[[Any, int], Outcome], start: Any, horizon: int, actions: int, names: Sequence[str]
) -> MDP:
    """The model whose values are the totals of episodes of ``horizon`` steps of ``step(s, a)``."""
    nothing = dict.fromkeys(names, 0.0)

    def timed(state: Any, action: int) -> Outcome:
        if state == OVER:
            return [OVER], [1.0], nothing
        time, place = state
        following, chances, rewards = step(place, action)
        later = [(time + 1, s) if time + 1 < horizon else OVER for s in following]
        return later, chances, {name: reward / DISCOUNT**time for name, reward in rewards.items()}

    return MDP.from_function(timed, [(0, start)], range(actions), discount=DISCOUNT)


def fishwood() -> Known:
    """``fishwood-v0``: the place one is in pays, and the action chooses the next one; it begins in the woods."""

    def step(place: int, action: int) -> Outcome:
        paid = {"fish": CHANCES["fish"] * (place != WOODS), "wood": CHANCES["wood"] * (place == WOODS)}
        return [action], [1.0], paid

    return _known(episode_model(step, WOODS, TIME, 2, ("fish", "wood")), lambda place: [place])


def fruit_tree() -> Known:
    """``fruit-tree-v0``: left or right six times, then the six nutrients of the leaf; the tree is the environment's."""
    import mo_gymnasium

    env: Any = mo_gymnasium.make("fruit-tree-v0").unwrapped
    names = ("protein", "carbs", "fats", "vitamins", "minerals", "water")

    def step(node: tuple[int, int], action: int) -> Outcome:
        row, column = node[0] + 1, 2 * node[1] + action
        paid: dict[str, float] = dict(zip(names, map(float, env.get_tree_value((row, column))), strict=True))
        return [(row, column)], [1.0], paid

    return _known(episode_model(step, (0, 0), env.tree_depth, 2, names), list)


def exact_totals(known: Known, policy: AbstractPolicy) -> np.ndarray:
    """The mean totals ``(m,)`` of a stationary policy, without sampling."""
    probabilities = np.asarray(jax.nn.softmax(policy(known.observations).logits), float)  # type: ignore[attr-defined]
    found = evaluate(known.mdp, probabilities / probabilities.sum(-1, keepdims=True))
    return np.array([found[name] for name in known.mdp.names])


def _known(mdp: MDP, shown: Callable[[Any], Sequence[int]]) -> Known:
    """What is shown once an episode is over does not matter; the first state's observation stands there."""
    labels: list[Any] = list(mdp.labels or ())
    places = [labels[0][1] if label == OVER else label[1] for label in labels]
    return Known(mdp, np.array([shown(place) for place in places], np.float32))
