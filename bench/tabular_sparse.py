"""Known sparse models: `arnpg.solve` against the solvers that people use today, at 1,000 to 1,000,000 states.

    pip install -e ".[bench]"
    python bench/tabular_sparse.py compare [--models garnet queue grid] [--sizes 1000 10000 100000] [--limit 240]
    python bench/tabular_sparse.py oracle [--size 100000]        # one scalarised solve, beside QuantEcon's DiscreteDP
    python bench/tabular_sparse.py grow [--limit 600]            # garnet from 1e4 to 1e6, queue at 1e6

Each solver runs in a process of its own, which builds the model, and counts from the arrays to the objective. Cells:
CPU seconds / wall seconds (relative distance from the reference, arnpg's optimum), for arnpg with its certified
relative gap and the peak memory of the process, model included. `> 240`: stopped after so many CPU seconds; `-`: has
no such criterion, or was not asked. Below 100,000 states arnpg is shown for the second call, and `first` has the CPU
seconds of the first one; it compiles nothing.
"""

from __future__ import annotations

import argparse
import functools
import os
import pathlib
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import peers

import arnpg
from arnpg.examples import hazard_grid, multiclass_queue
from arnpg.tabular.choice import kernel_of
from arnpg.tabular.kernel import AbstractKernel
from arnpg.tabular.slots import SlotKernel
from arnpg.tabular.sparse_oracle import policy_iteration

HERE = pathlib.Path(__file__)
DISCOUNTS = {"garnet": (0.95, 0.99), "queue": (0.99,), "grid": (0.99,)}
LIMITED = {"garnet": ("r1", ("r2", 1)), "queue": ("served 3", ("waiting", -1)), "grid": ("first", ("hazard", -1))}
SHARED = {
    "garnet": ("r1", "r2", "r3"),
    "queue": ("served 1", "served 2", "served 3"),
    "grid": ("first", "second"),
}


def garnet(states: int, discount: float, actions: int = 5, slots: int = 5, objectives: int = 3) -> arnpg.MDP:
    """Random successors, rewards uniform in [0, 1]."""
    draws = np.random.default_rng(states)
    chances = draws.exponential(size=(states, actions, slots))
    chances /= chances.sum(axis=2, keepdims=True)
    successors = draws.integers(0, states, (states, actions, slots), dtype=np.int32)
    rewards = draws.random((objectives, states, actions))
    names = [f"r{i + 1}" for i in range(objectives)]
    return arnpg.MDP.from_slots(successors, chances, rewards, discount=discount, names=names)


def build(model: str, size: int, discount: float) -> arnpg.MDP:
    if model == "garnet":
        return garnet(size, discount)
    return (multiclass_queue if model == "queue" else hazard_grid)(size, discount=discount)


def limit(mdp: arnpg.MDP, model: str) -> float:
    """Between what the maximised objective's best policy gives and the best there is, with the limit's sign."""
    first, (second, sign) = LIMITED[model]
    ours = arnpg.solve(mdp, arnpg.Linear({first: 1.0}), gap=1e-3).values[second]
    best = arnpg.solve(mdp, arnpg.Linear({second: float(sign)}), gap=1e-3).values[second]
    return sign * 0.5 * (ours + best)


def criterion(model: str, kind: str, least: float) -> arnpg.criteria.AbstractCriterion:
    shared = dict.fromkeys(SHARED[model], 1.0)
    first, (second, sign) = LIMITED[model]
    if kind == "constrained":
        limits = {"at_least" if sign > 0 else "at_most": {second: sign * least}}
        return arnpg.Constrained(first, **limits)
    return arnpg.ProportionalFair(shared) if kind == "sum-log" else arnpg.MaxMin(shared)


def problem(mdp: arnpg.MDP, model: str, kind: str, least: float) -> peers.Problem:
    first, (second, sign) = LIMITED[model]
    chosen = [(first, 1), (second, sign)] if kind == "constrained" else [(name, 1) for name in SHARED[model]]
    rewards = np.stack([sign * mdp.rewards[mdp.names.index(name)].ravel() for name, sign in chosen])
    return peers.Problem(mdp.transitions, rewards, mdp.initial, mdp.discount, kind, least)


def pdlp(given: peers.Problem, precision: str) -> float:
    """OR-Tools' first-order method for linear programs."""
    from ortools.pdlp import solve_log_pb2, solvers_pb2
    from ortools.pdlp.python import pdlp as library
    from scipy import sparse

    data = peers.program(given)
    size, infinity = len(data.costs), np.inf
    form = library.QuadraticProgram()
    form.objective_vector = data.costs
    form.constraint_matrix = sparse.csc_matrix(sparse.vstack([data.flow, data.rows]))
    form.constraint_lower_bounds = np.concatenate([data.start, data.least])
    form.constraint_upper_bounds = np.concatenate([data.start, np.full(len(data.least), infinity)])
    form.variable_lower_bounds = np.concatenate([np.zeros(size - data.free), np.full(data.free, -infinity)])
    form.variable_upper_bounds = np.full(size, infinity)
    settings = solvers_pb2.PrimalDualHybridGradientParams()
    optimality = settings.termination_criteria.simple_optimality_criteria
    optimality.eps_optimal_relative = optimality.eps_optimal_absolute = float(precision)
    answer = library.primal_dual_hybrid_gradient(form, settings)
    if answer.solve_log.termination_reason != solve_log_pb2.TERMINATION_REASON_OPTIMAL:
        raise RuntimeError(str(answer.solve_log.termination_reason))
    return -float(data.costs @ answer.primal_solution) / (1 - given.discount)


PEERS = {**peers.PEERS, "PDLP 1e-6": (pdlp, "1e-6")}
LINEAR_ONLY = ("HiGHS", "Storm", "PDLP")


def one(solver: str, model: str, size: int, discount: float, kind: str, least: float) -> None:
    """In a process of its own: CPU, wall, objective, memory, and arnpg's certified relative gap."""
    mdp = build(model, size, discount)
    if solver != "arnpg":
        call, setting = PEERS[solver]
        print(*peers.timed(functools.partial(call, problem(mdp, model, kind, least), setting)))
        return
    found = []
    call = lambda: found.append(arnpg.solve(mdp, criterion(model, kind, least))) or found[0].objective  # noqa: E731
    first = peers.timed(call)
    again = peers.timed(call) if size < 100_000 else first
    print(*again, found[0].relative_gap if found[0].certified else np.inf, len(found[0].trace), first.cpu)


def cell(line: str, best: float) -> str:
    if line.startswith(">") or line == "fails":
        return line
    cpu, wall, objective, *_ = map(float, line.split())
    return f"{cpu:.3g} / {wall:.3g} ({abs(objective - best) / abs(best):.0e})"


def ours(line: str) -> tuple[str, float]:
    if line.startswith(">") or line == "fails":
        return line, np.nan
    cpu, wall, objective, memory, gap, rounds, first = map(float, line.split())
    told = f"{cpu:.3g} / {wall:.3g}, first {first:.3g}, gap {gap:.0e}, {rounds:.0f} rounds, {memory:.0f} MB"
    return told, objective


def row(model: str, size: int, discount: float, kind: str, least: float, solvers: list[str], seconds: float) -> str:
    words = [model, str(size), str(discount), kind, repr(least)]
    run = functools.partial(peers.in_a_process, HERE, limit=seconds)
    text, best = ours(run(["one", "arnpg", *words]))
    cells = [model, str(size), str(discount), kind, text]
    for peer in solvers:
        skipped = kind == "sum-log" and peer.startswith(LINEAR_ONLY) or kind == "max-min" and "Storm" in peer
        cells.append("-" if skipped else cell(run(["one", peer, *words]), best))
    return "| " + " | ".join(cells) + " |"


def compare(models: list[str], sizes: list[int], solvers: list[str], seconds: float, kinds: list[str]) -> None:
    print("| model | S | discount | criterion | arnpg | " + " | ".join(solvers) + " |")
    print("|---" * (5 + len(solvers)) + "|", flush=True)
    for model in models:
        for size in sizes:
            for discount in DISCOUNTS[model]:
                least = limit(build(model, size, discount), model)
                for kind in kinds:
                    print(row(model, size, discount, kind, least, solvers, seconds), flush=True)


def oracle(size: int) -> None:
    """One scalarised model, every objective with weight one, to 1e-6 of its value: the second call of each counts."""
    from quantecon.markov import DiscreteDP

    print("| model | discount | arnpg, CPU / wall s | QuantEcon | ratio of CPU | difference |\n" + "|---" * 6 + "|")
    for model in DISCOUNTS:
        for discount in DISCOUNTS[model]:
            mdp = build(model, size, discount)
            pairs = np.arange(mdp.states * mdp.actions)
            reward = mdp.rewards.sum(axis=0)
            goal = 1e-6 * np.abs(reward).max() / (1 - discount)
            peer = DiscreteDP(reward.ravel(), mdp.transitions, discount, pairs // mdp.actions, pairs % mdp.actions)
            theirs = functools.partial(peer.solve, method="modified_policy_iteration", epsilon=goal)
            mine = functools.partial(climb, kernel_of(mdp), reward, goal)
            theirs(), mine()
            (a, b, value), (c, d, other) = clocked(mine), clocked(theirs)
            apart = abs(value - mdp.initial @ other.v) / abs(value)
            print(f"| {model} | {discount} | {a:.2f} / {b:.2f} | {c:.2f} / {d:.2f} | {c / a:.1f} | {apart:.0e} |")


def climb(kernel: AbstractKernel, reward: np.ndarray, goal: float) -> float:
    """Policy iteration until the two-sided bound is as narrow as the peer's answer, from nothing."""
    mdp = kernel.mdp
    for bracket in policy_iteration(SlotKernel(mdp.transitions, mdp.actions), reward, mdp.discount):
        if bracket.width(mdp.discount) <= goal:
            break
    return float(mdp.initial @ bracket.values)


def clocked(call) -> tuple:  # noqa: ANN001
    cpu, wall = time.process_time(), time.perf_counter()
    value = call()
    return time.process_time() - cpu, time.perf_counter() - wall, value


def grow(seconds: float) -> None:
    """Time against size, without peers: none answers at a million."""
    cases = [("garnet", size, 0.95) for size in (10_000, 100_000, 1_000_000)] + [("queue", 1_000_000, 0.99)]
    print("| model | S | discount | criterion | arnpg |\n" + "|---" * 5 + "|", flush=True)
    for model, size, discount in cases:
        least = limit(build(model, size, discount), model)
        for kind in peers.CRITERIA:
            print(row(model, size, discount, kind, least, [], seconds), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("compare")
    run.add_argument("--models", nargs="+", default=list(DISCOUNTS))
    run.add_argument("--sizes", nargs="+", type=int, default=[1000, 10_000, 100_000])
    run.add_argument("--peers", nargs="*", default=list(PEERS))
    run.add_argument("--kinds", nargs="+", default=list(peers.CRITERIA))
    run.add_argument("--limit", type=float, default=240)
    commands.add_parser("oracle").add_argument("--size", type=int, default=100_000)
    commands.add_parser("grow").add_argument("--limit", type=float, default=600)
    alone = commands.add_parser("one")
    fields = {"solver": str, "model": str, "size": int, "discount": float, "kind": str, "least": float}
    for name, kind in fields.items():
        alone.add_argument(name, type=kind)
    given = parser.parse_args()
    if given.command == "compare":
        compare(given.models, given.sizes, given.peers, given.limit, given.kinds)
    elif given.command == "oracle":
        oracle(given.size)
    elif given.command == "grow":
        grow(given.limit)
    else:
        one(given.solver, given.model, given.size, given.discount, given.kind, given.least)


if __name__ == "__main__":
    main()
