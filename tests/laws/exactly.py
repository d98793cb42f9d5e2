"""Exact quantities of the paper, written from their definitions with dense linear algebra, for the laws to use."""

import numpy as np

from arnpg import MDP

Table = np.ndarray


def occupancy(mdp: MDP, policy: Table) -> Table:
    """``d_rho^pi(s, a)`` from its flow equations (Section 2)."""
    under = np.einsum("sa,sat->st", policy, mdp.transitions)
    states = np.linalg.solve(np.eye(mdp.states) - mdp.discount * under.T, (1 - mdp.discount) * mdp.initial)
    return states[:, None] * policy


def values(mdp: MDP, policy: Table, reward: Table | None = None) -> np.ndarray:
    """``V_{1:m}^pi(rho)``, or the value of one reward."""
    rewards = mdp.rewards if reward is None else reward[None]
    under = np.einsum("sa,sat->st", policy, mdp.transitions)
    right = np.einsum("sa,msa->sm", policy, rewards)
    found = mdp.initial @ np.linalg.solve(np.eye(mdp.states) - mdp.discount * under, right)
    return found if reward is None else found[0]


def divergence(mdp: MDP, at: Table, policy: Table, anchor: Table) -> float:
    """``D_d(pi || anchor)`` with ``d`` the state visitation of ``at``."""
    states = occupancy(mdp, at).sum(axis=1)
    return float(states @ (policy * np.log(policy / anchor)).sum(axis=1))


def random_policy(draws: np.random.Generator, mdp: MDP, concentration: float = 1.0) -> Table:
    """A Dirichlet row for each state, kept off zero."""
    table = draws.dirichlet(np.full(mdp.actions, concentration), size=mdp.states) + 1e-6
    return table / table.sum(axis=1, keepdims=True)
