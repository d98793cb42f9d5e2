"""Sparse models for the tests: random graphs and lattices, with masks, absorbing and unreachable states."""

from __future__ import annotations

import numpy as np

import arnpg


def garnet(states: int, actions: int, slots: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random successors, probabilities and three rewards."""
    generator = np.random.default_rng(seed)
    probabilities = generator.dirichlet(np.ones(slots), size=(states, actions))
    rewards = generator.random((3, states, actions))
    return generator.integers(0, states, (states, actions, slots), dtype=np.int32), probabilities, rewards


def walk(states: int, actions: int, slots: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A slow random walk on a line: it mixes badly; ``slots`` is not used."""
    del slots
    generator = np.random.default_rng(seed)
    here = np.arange(states)
    moves = np.stack([np.maximum(here - 1, 0), here, np.minimum(here + 1, states - 1)], axis=1)
    successors = np.repeat(moves[:, None], actions, axis=1).astype(np.int32)
    probabilities = np.broadcast_to(generator.dirichlet(np.ones(3), size=actions), successors.shape).copy()
    return successors, probabilities, generator.random((3, states, actions))


FAMILIES = {"garnet": garnet, "walk": walk}


def pair(seed: int, discount: float) -> tuple[arnpg.MDP, arnpg.MDP]:
    """One model twice, sparse and dense: masked, started in few states, with an absorbing and unreachable states."""
    generator = np.random.default_rng(seed)
    states, actions, slots = (int(generator.integers(low, high)) for low, high in ((3, 120), (1, 5), (1, 5)))
    successors, probabilities, rewards = FAMILIES[("garnet", "walk")[seed % 2]](states, actions, slots, seed)
    successors[-1] = states - 1
    allowed = generator.random((states, actions)) < 0.7
    allowed[np.arange(states), generator.integers(0, actions, states)] = True
    initial = generator.dirichlet(np.full(states, 0.1))
    words = dict(discount=discount, allowed=allowed, initial=initial)
    sparse = arnpg.MDP.from_slots(successors, probabilities, rewards, **words)
    assert not isinstance(sparse.transitions, np.ndarray)
    full = sparse.transitions.toarray().reshape(states, actions, states)
    return sparse, arnpg.MDP(full, rewards, **words)
