"""Sampling a tabular model: trajectories a second, against the same estimator in a plain Python loop and in NumPy.

    taskset -c 1 python bench/sampling.py

One estimate of ``Q`` on the paper's model: 20 trajectories of geometric length from each of 200 state-action pairs, all
rewards and the divergence from the anchor, on one core. The first loop draws with ``numpy.random.choice``, as the
authors' scripts do; the second with the standard library's ``random`` on lists, as fast as a plain loop can; NumPy
steps all trajectories side by side and drops those that have ended. CPU seconds.
"""

from __future__ import annotations

import bisect
import os
import random
import time
from collections.abc import Callable

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import numpy as np

from arnpg import MDP
from arnpg.examples import random_cmdp
from arnpg.tabular.sampled import estimate
from arnpg.tabular.simulator import TableSimulator

TRAJECTORIES, BATCH = 20, 10


def in_a_loop_of_choices(mdp: MDP, policy: np.ndarray, ratio: np.ndarray, trajectories: int) -> np.ndarray:
    """One step of one trajectory at a time, on arrays."""
    sums = np.zeros((mdp.objectives + 1, mdp.states, mdp.actions))
    for state in range(mdp.states):
        for action in range(mdp.actions):
            for _ in range(trajectories):
                s, a, first = state, action, True
                while True:
                    sums[:-1, state, action] += mdp.rewards[:, s, a]
                    sums[-1, state, action] += 0.0 if first else ratio[s, a]
                    first = False
                    if np.random.uniform() >= mdp.discount:
                        break
                    s = np.random.choice(mdp.states, p=mdp.transitions[s, a])
                    a = np.random.choice(mdp.actions, p=policy[s])
    return sums / trajectories


def in_a_loop(mdp: MDP, policy: np.ndarray, ratio: np.ndarray, trajectories: int) -> np.ndarray:
    """One step of one trajectory at a time, on lists."""
    moves = np.cumsum(mdp.transitions, axis=2).tolist()
    choices, rewards = np.cumsum(policy, axis=1).tolist(), np.moveaxis(mdp.rewards, 0, 2).tolist()
    table, draw, last = ratio.tolist(), random.random, mdp.states - 1
    sums = np.zeros((mdp.states, mdp.actions, mdp.objectives + 1))
    for state in range(mdp.states):
        for action in range(mdp.actions):
            totals = [0.0] * (mdp.objectives + 1)
            for _ in range(trajectories):
                s, a, first = state, action, True
                while True:
                    for i, reward in enumerate(rewards[s][a]):
                        totals[i] += reward
                    if not first:
                        totals[-1] += table[s][a]
                    if draw() >= mdp.discount:
                        break
                    first = False
                    s = min(bisect.bisect(moves[s][a], draw()), last)
                    a = min(bisect.bisect(choices[s], draw()), mdp.actions - 1)
            sums[state, action] = totals
    return np.moveaxis(sums, 2, 0) / trajectories


def in_numpy(mdp: MDP, policy: np.ndarray, ratio: np.ndarray, trajectories: int, generator) -> np.ndarray:
    """All trajectories side by side; those that have ended are dropped at each step."""
    moves, choices = np.cumsum(mdp.transitions, axis=2), np.cumsum(policy, axis=1)
    lanes = np.repeat(np.arange(mdp.states * mdp.actions), trajectories)
    sums = np.zeros((mdp.objectives + 1, mdp.states * mdp.actions))
    states, actions, first = lanes // mdp.actions, lanes % mdp.actions, True
    while len(lanes):
        for i, reward in enumerate(mdp.rewards):
            sums[i] += np.bincount(lanes, reward[states, actions], sums.shape[1])
        if not first:
            sums[-1] += np.bincount(lanes, ratio[states, actions], sums.shape[1])
        first, alive = False, generator.random(len(lanes)) < mdp.discount
        lanes, states, actions = lanes[alive], states[alive], actions[alive]
        uniform = generator.random((2, len(lanes), 1))
        states = np.minimum((moves[states, actions] <= uniform[0]).sum(axis=1), mdp.states - 1)
        actions = np.minimum((choices[states] <= uniform[1]).sum(axis=1), mdp.actions - 1)
    return sums.reshape(-1, mdp.states, mdp.actions) / trajectories


def least_cpu(call: Callable[[], object], repeats: int) -> float:
    call()
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        seconds.append(time.process_time() - began)
    return min(seconds)


def main() -> None:
    mdp, generator = random_cmdp(), np.random.default_rng(0)
    raw = generator.normal(size=(2, mdp.states, mdp.actions))
    logs, anchor = (table - np.log(np.exp(table).sum(axis=1, keepdims=True)) for table in raw)
    policy, ratio, simulator = np.exp(logs), logs - anchor, TableSimulator(mdp)
    count = mdp.states * mdp.actions * TRAJECTORIES
    with jax.enable_x64(True):
        one = jax.jit(lambda key: estimate(simulator, logs, anchor, TRAJECTORIES, key))
        many = jax.jit(jax.vmap(one))
        keys = jax.random.split(jax.random.key(0), BATCH)
        seconds = {
            "loop of choices": least_cpu(lambda: in_a_loop_of_choices(mdp, policy, ratio, TRAJECTORIES), 5),
            "loop on lists": least_cpu(lambda: in_a_loop(mdp, policy, ratio, TRAJECTORIES), 20),
            "NumPy": least_cpu(lambda: in_numpy(mdp, policy, ratio, TRAJECTORIES, generator), 200),
            "arnpg": least_cpu(lambda: jax.block_until_ready(one(keys[0])), 1000),
            f"arnpg, {BATCH} seeds in one call": least_cpu(lambda: jax.block_until_ready(many(keys)), 200) / BATCH,
        }
    peers = ("loop of choices", "loop on lists", "NumPy")
    titles = ("", "ms an estimate", "trajectories a second", *(f"times {peer}" for peer in peers))
    print(f"| {' | '.join(titles)} |\n" + "|---" * len(titles) + "|")
    for name, cost in seconds.items():
        ratios = " | ".join(f"{seconds[peer] / cost:.1f}" for peer in peers)
        print(f"| {name} | {1e3 * cost:.2f} | {count / cost:,.0f} | {ratios} |")


if __name__ == "__main__":
    main()
