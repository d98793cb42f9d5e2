"""Known dense models: `arnpg.solve` against the solvers that people use today, and plain iterations against NumPy.

    pip install -e ".[bench]"
    taskset -c 1 python bench/tabular_dense.py [--sizes 20 100 500 1000] [--limit 60] [--out table.md]

The paper's random model (10 actions, discount .8, two rewards) at several sizes, under three criteria; one thread. Each
solver runs in a process of its own, which reads the model, and counts from the arrays in its own format's making to the
objective. `arnpg` is shown for its first call in the process and for the second. Cells: CPU seconds / wall seconds
(relative distance from the reference, arnpg's certified optimum to 1e-9). `> 60`: stopped; `-`: has no such criterion.
"""

from __future__ import annotations

import argparse
import functools
import os
import pathlib
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import peers
from scipy import sparse

import arnpg
from arnpg.examples import random_cmdp
from arnpg.loop import run, run_batch
from arnpg.recipes.tabular import arnpg_epd

HERE = pathlib.Path(__file__)
NO_LOGARITHM = ("HiGHS", "Storm")
STEPS, BATCH = 300, 100


def limit(mdp: arnpg.MDP) -> float:
    """Between what the first reward's best policy gives and the most there is: it binds."""
    ours = arnpg.solve(mdp, arnpg.Linear({"r1": 1.0})).values["r2"]
    most = arnpg.solve(mdp, arnpg.Linear({"r2": 1.0})).values["r2"]
    return 0.5 * (ours + most)


def criterion(name: str, least: float) -> arnpg.criteria.AbstractCriterion:
    return {
        "constrained": arnpg.Constrained("r1", at_least={"r2": least}),
        "sum-log": arnpg.ProportionalFair(),
        "max-min": arnpg.MaxMin(),
    }[name]


def one(solver: str, size: int, kind: str, least: float) -> None:
    """In a process of its own: one timing a line."""
    mdp = random_cmdp(states=size)
    if solver == "arnpg":
        for _ in range(2):
            print(*peers.timed(lambda: arnpg.solve(mdp, criterion(kind, least)).objective))
        return
    transitions = sparse.csr_array(mdp.transitions.reshape(-1, size))
    rewards = mdp.rewards.reshape(mdp.objectives, -1)
    problem = peers.Problem(transitions, rewards, mdp.initial, mdp.discount, kind, least)
    call, setting = peers.PEERS[solver]
    print(*peers.timed(functools.partial(call, problem, setting)))


def cell(lines: str, best: float) -> str:
    """``cpu / wall (distance)`` of the last line, or what went wrong."""
    if lines.startswith(">") or lines == "fails":
        return lines
    cpu, wall, objective, _ = map(float, lines.split())
    return f"{cpu:.3g} / {wall:.3g} ({abs(objective - best) / abs(best):.0e})"


def table(sizes: list[int], seconds: float) -> list[str]:
    rows = ["| criterion | S | arnpg first | arnpg again | " + " | ".join(peers.PEERS) + " |"]
    rows.append("|---" * (4 + len(peers.PEERS)) + "|")
    for size in sizes:
        mdp = random_cmdp(states=size)
        least = limit(mdp)
        for kind in peers.CRITERIA:
            best = arnpg.solve(mdp, criterion(kind, least), gap=1e-9).objective
            run_in = functools.partial(peers.in_a_process, HERE, limit=seconds)
            words = [str(size), kind, repr(least)]
            cells = [cell(line, best) for line in run_in(["--one", "arnpg", *words], lines=2).splitlines()]
            for peer in peers.PEERS:
                skipped = kind == "sum-log" and peer.startswith(NO_LOGARITHM) or kind == "max-min" and "Storm" in peer
                cells.append("-" if skipped else cell(run_in(["--one", peer, *words]), best))
            rows.append(f"| {kind} | {size} | " + " | ".join(cells) + " |")
            print(rows[-1], flush=True)
    return rows


def epd_in_numpy(mdp: arnpg.MDP, least: float, steps: int) -> np.ndarray:
    """ARNPG-EPD with ``eta = eta' = 1``, ``t_k = 1``, as one would write it: one linear solve a step."""
    gamma, rewards, states = mdp.discount, mdp.rewards, mdp.states
    log_policy = np.full((states, mdp.actions), -np.log(mdp.actions))

    def evaluate(log_policy: np.ndarray) -> np.ndarray:
        policy = np.exp(log_policy)
        chain = np.matmul(policy[:, None, :], mdp.transitions)[:, 0]
        return np.linalg.solve(np.eye(states) - gamma * chain, (policy * rewards).sum(axis=2).T).T

    by_state = evaluate(log_policy)
    values, rows = by_state @ mdp.initial, []
    dual = max(0.0, values[1] - least)
    for _ in range(steps):
        weights = np.array([1.0, dual + least - values[1]])
        q = np.tensordot(weights, rewards, 1) + gamma * mdp.transitions @ (weights @ by_state)
        log_policy = log_policy + q / (1 - gamma)
        log_policy -= log_policy.max(axis=1, keepdims=True)
        log_policy -= np.log(np.exp(log_policy).sum(axis=1, keepdims=True))
        by_state = evaluate(log_policy)
        values = by_state @ mdp.initial
        dual = max(values[1] - least, dual + least - values[1])
        rows.append(values)
    return np.array(rows)


def least_cpu(call, repeats: int = 60) -> float:
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        seconds.append(time.process_time() - began)
    return min(seconds)


def iterations() -> list[str]:
    """300 plain steps of ARNPG-EPD on the published instance: NumPy, one run, one run of a batch of 100."""
    mdp = random_cmdp()
    bound = arnpg.Constrained("r1", at_least={"r2": 3.0}).bind(mdp.names)
    single = arnpg_epd(mdp, bound)
    batch = [arnpg_epd(mdp, bound, dual_step=1 + i / BATCH) for i in range(BATCH)]
    ours, theirs = run(single, STEPS).trace.values, epd_in_numpy(mdp, 3.0, STEPS)
    run_batch(batch, STEPS)
    numpy = least_cpu(lambda: epd_in_numpy(mdp, 3.0, STEPS))
    alone = least_cpu(lambda: run(single, STEPS))
    many = least_cpu(lambda: run_batch(batch, STEPS), 10) / BATCH
    return [
        f"Largest difference of the two traces: {np.abs(ours - theirs).max():.0e}.",
        "",
        "| 300 steps of ARNPG-EPD, S=20 | ms CPU a run | times faster |\n|---|---|---|",
        f"| NumPy | {1e3 * numpy:.2f} | 1 |",
        f"| arnpg | {1e3 * alone:.2f} | {numpy / alone:.1f} |",
        f"| arnpg, batch of {BATCH} | {1e3 * many:.2f} | {numpy / many:.1f} |",
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 100, 500, 1000])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each peer")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--one", nargs=4, metavar=("SOLVER", "S", "CRITERION", "LEAST"))
    given = parser.parse_args()
    if given.one:
        one(given.one[0], int(given.one[1]), given.one[2], float(given.one[3]))
        return
    lines = [*iterations(), "", *table(given.sizes, given.limit)]
    text = "\n".join(lines) + "\n"
    if given.out:
        given.out.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
