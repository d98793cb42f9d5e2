"""Random models for the tests: twelve kinds, five discounts, drawn from a seed and from nothing else."""

from __future__ import annotations

import numpy as np

import arnpg

DISCOUNTS = (0.0, 0.5, 0.9, 0.99, 0.999)
KINDS = (
    "dense",
    "garnet",
    "deterministic",
    "periodic",
    "unreachable",
    "absorbing",
    "duplicate actions",
    "constant reward",
    "negative rewards",
    "mixed units",
    "lottery rewards",
    "one start",
)


def random_model(seed: int) -> arnpg.MDP:
    """The model of a seed: its kind is ``seed % 12``, its discount ``(seed // 12) % 5``."""
    generator = np.random.default_rng(seed)
    kind, discount = KINDS[seed % len(KINDS)], DISCOUNTS[seed // len(KINDS) % len(DISCOUNTS)]
    states, actions = int(2 + 58 * generator.random() ** 2.5), int(generator.integers(2, 7))
    objectives = int(generator.integers(2, 6))
    transitions = _transitions(kind, states, actions, generator)
    rewards = _rewards(kind, objectives, transitions, generator)
    initial = _initial(kind, states, generator)
    names = [f"r{i}" for i in range(objectives)]
    return arnpg.MDP(transitions, rewards, discount=discount, initial=initial, names=names)


def dense_model(states: int, actions: int, objectives: int, seed: int, discount: float = 0.8) -> arnpg.MDP:
    """Uniform rewards, uniform rows divided by their sums, as in the paper's tabular experiments."""
    generator = np.random.default_rng(seed)
    transitions = generator.random((states, actions, states))
    rewards = {f"r{i}": generator.random((states, actions)) for i in range(objectives)}
    return arnpg.MDP(transitions, rewards, discount=discount, normalize=True)


def _transitions(kind: str, states: int, actions: int, generator: np.random.Generator) -> np.ndarray:
    index = np.arange(states)
    transitions = generator.random((states, actions, states))
    if kind == "garnet":
        transitions *= generator.random(transitions.shape) < 3 / states
        transitions[:, :, 0] += 1e-3
    elif kind == "deterministic":
        transitions = np.eye(states)[generator.integers(states, size=(states, actions))]
    elif kind == "periodic":
        transitions = np.eye(states)[np.broadcast_to((index + 1)[:, None] % states, (states, actions))].copy()
        transitions[0, -1] = np.eye(states)[states // 2]
    elif kind == "unreachable":
        transitions[: max(states // 2, 1), :, max(states // 2, 1) :] = 0.0
    elif kind == "absorbing":
        transitions[-1] = np.eye(states)[-1]
        transitions[0, 0] = np.eye(states)[0]
    elif kind == "duplicate actions":
        transitions[:, -1] = transitions[:, 0]
    return transitions / transitions.sum(axis=2, keepdims=True)


def _rewards(kind: str, objectives: int, transitions: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    rewards = generator.random((objectives, *transitions.shape[:2]))
    if kind == "duplicate actions":
        rewards = np.round(rewards, 1)
        rewards[:, :, -1] = rewards[:, :, 0]
    elif kind == "constant reward":
        rewards[-1] = 0.7
    elif kind == "negative rewards":
        rewards -= 0.5
    elif kind == "mixed units":
        rewards *= 10.0 ** generator.uniform(-3, 6, size=(objectives, 1, 1))
    elif kind == "lottery rewards":
        rewards = (rewards > 0.8).astype(float)
    return rewards


def _initial(kind: str, states: int, generator: np.random.Generator) -> np.ndarray:
    start = generator.random(states)
    if kind == "unreachable":
        start[max(states // 2, 1) :] = 0.0
    elif kind in ("periodic", "absorbing", "one start"):
        start = np.eye(states)[0]
    return start / start.sum()
