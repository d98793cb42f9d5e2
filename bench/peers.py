"""What users have today for known models: one problem, handed to each solver in the form that suits it best.

A problem is a model as a sparse matrix and one of three criteria. Linear and cone programs are written over discounted
occupancies ``x(s, a)``, with explicit variables for the values (without them Clarabel fails on the sum of logarithms):

    sum_a x(t, a) - gamma sum_{s, a} P(t | s, a) x(s, a) = (1 - gamma) rho(t),    V_i = <r_i, x> / (1 - gamma).

Each peer returns its objective, in the user's units. Storm sees the discount as a chance ``1 - gamma`` to stop.
"""

from __future__ import annotations

import pathlib
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

__all__ = ["CRITERIA", "PEERS", "Problem", "Timing", "timed"]

CRITERIA = ("constrained", "sum-log", "max-min")


class Problem(NamedTuple):
    """``P`` as ``(S A, S)``, rewards ``(m, S A)``; ``limit`` is the least value of the second objective."""

    transitions: sparse.csr_array
    rewards: np.ndarray
    initial: np.ndarray
    discount: float
    criterion: str
    limit: float

    @property
    def actions(self) -> int:
        return self.transitions.shape[0] // self.transitions.shape[1]


class Timing(NamedTuple):
    """CPU and wall seconds, the objective found, and the peak memory of the process in MB."""

    cpu: float
    wall: float
    objective: float
    memory: float


def timed(call: Callable[[], float]) -> Timing:
    cpu, wall = time.process_time(), time.perf_counter()
    objective = call()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Timing(time.process_time() - cpu, time.perf_counter() - wall, objective, memory)


class _Program(NamedTuple):
    """``min c y`` over ``y = (x, V, level)`` with ``flow y = start`` and ``rows y >= 0``."""

    costs: np.ndarray
    flow: sparse.csr_array
    start: np.ndarray
    rows: sparse.csr_array
    least: np.ndarray
    free: int  # the last so many variables have no sign


def program(problem: Problem) -> _Program:
    """The linear part, with values in units of ``1 / (1 - gamma)``."""
    states, pairs, count = problem.transitions.shape[1], problem.transitions.shape[0], len(problem.rewards)
    owner = sparse.csr_array((np.ones(pairs), (np.arange(pairs) // problem.actions, np.arange(pairs))))
    flow = owner - problem.discount * problem.transitions.T
    blank = sparse.csr_array((states, count + 1))
    values = sparse.hstack([-sparse.csr_array(problem.rewards), sparse.eye_array(count), sparse.csr_array((count, 1))])
    equal = sparse.csr_array(sparse.vstack([sparse.hstack([flow, blank]), values]))
    start = np.concatenate([(1 - problem.discount) * problem.initial, np.zeros(count)])
    costs, rows, least = np.zeros(pairs + count + 1), np.zeros((0, pairs + count + 1)), np.zeros(0)
    if problem.criterion == "constrained":
        costs[pairs] = -1
        rows, least = np.zeros((1, len(costs))), np.array([problem.limit * (1 - problem.discount)])
        rows[0, pairs + 1] = 1
    elif problem.criterion == "max-min":
        costs[-1] = -1
        rows, least = np.zeros((count, len(costs))), np.zeros(count)
        rows[:, pairs : pairs + count], rows[:, -1] = np.eye(count), -1
    return _Program(costs, equal, start, sparse.csr_array(rows), least, count + 1)


def highs(problem: Problem, method: str) -> float:
    """HiGHS: ``simplex``, ``ipm`` (with crossover off) or ``hipo``, its newer interior-point method.

    HiPO needs ``pip install highspy[extras]``.
    """
    import highspy

    data = program(problem)
    solver, model = highspy.Highs(), highspy.HighsLp()
    solver.silent()
    matrix = sparse.csc_array(sparse.vstack([data.flow, data.rows]))
    size, infinity = len(data.costs), highspy.kHighsInf
    model.num_col_, model.num_row_ = size, matrix.shape[0]
    model.col_cost_ = data.costs
    model.col_lower_ = np.concatenate([np.zeros(size - data.free), np.full(data.free, -infinity)])
    model.col_upper_ = np.full(size, infinity)
    model.row_lower_ = np.concatenate([data.start, data.least])
    model.row_upper_ = np.concatenate([data.start, np.full(len(data.least), infinity)])
    model.a_matrix_.start_, model.a_matrix_.index_ = matrix.indptr, matrix.indices
    model.a_matrix_.value_ = matrix.data
    if solver.setOptionValue("solver", method) != highspy.HighsStatus.kOk:
        raise RuntimeError(f"this build of HiGHS has no {method}")  # it would take another method, and not say so
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("run_crossover", "off")
    solver.passModel(model)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(solver.modelStatusToString(solver.getModelStatus()))
    return -solver.getInfo().objective_function_value / (1 - problem.discount)


def cones(problem: Problem) -> tuple[np.ndarray, sparse.csc_array, np.ndarray, tuple[int, int, int]]:
    """``min c y`` with ``b - A y`` in a zero, a nonnegative and exponential cones; counts of the three."""
    data, count = program(problem), len(problem.rewards)
    pairs = len(data.costs) - data.free
    logs = count if problem.criterion == "sum-log" else 0
    width = len(data.costs) + logs
    pad = lambda rows: sparse.hstack([rows, sparse.csr_array((rows.shape[0], logs))])  # noqa: E731
    signs = sparse.hstack([-sparse.eye_array(pairs), sparse.csr_array((pairs, width - pairs))])
    blocks, right = [pad(data.flow), signs, pad(-data.rows)], [data.start, np.zeros(pairs), -data.least]
    for i in range(logs):
        block = np.zeros((3, width))
        block[0, pairs + count + 1 + i], block[2, pairs + i] = -1, -1
        blocks.append(sparse.csr_array(block))
        right.append(np.array([0.0, 1.0, 0.0]))
    costs = np.concatenate([data.costs, -np.ones(logs)])
    matrix = sparse.csc_array(sparse.vstack(blocks))
    return costs, matrix, np.concatenate(right), (len(data.start), pairs + len(data.least), logs)


def _in_units(problem: Problem, least: float) -> float:
    """The objective from the least cost, whose values are in units of ``1 / (1 - gamma)``."""
    if problem.criterion == "sum-log":
        return -least - len(problem.rewards) * np.log(1 - problem.discount)
    return -least / (1 - problem.discount)


def clarabel(problem: Problem, method: str) -> float:
    """Clarabel, an interior-point solver for cone programs."""
    import clarabel

    costs, matrix, right, (zero, positive, logs) = cones(problem)
    kinds = [clarabel.ZeroConeT(zero), clarabel.NonnegativeConeT(positive)]
    kinds += [clarabel.ExponentialConeT()] * logs
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    nothing = sparse.csc_matrix((len(costs), len(costs)))
    answer = clarabel.DefaultSolver(nothing, costs, sparse.csc_matrix(matrix), right, kinds, settings).solve()
    if str(answer.status) != "Solved":
        raise RuntimeError(str(answer.status))
    return _in_units(problem, answer.obj_val)


def scs(problem: Problem, method: str) -> float:
    """SCS, a first-order solver for cone programs, to 1e-7."""
    import scs

    costs, matrix, right, (zero, positive, logs) = cones(problem)
    data = {"A": sparse.csc_matrix(matrix), "b": right, "c": costs}
    cone = {"z": zero, "l": positive, "ep": logs}
    answer = scs.SCS(data, cone, eps_abs=1e-8, eps_rel=1e-7, max_iters=1_000_000, verbose=False).solve()
    if answer["info"]["status"] != "solved":
        raise RuntimeError(answer["info"]["status"])
    return _in_units(problem, answer["info"]["pobj"])


def storm(problem: Problem, precision: str) -> float:
    """Storm's multi-objective model checker, for constraints only; building the model is not counted."""
    if problem.criterion != "constrained":
        raise NotImplementedError("no such query")
    import stormpy
    from stormpy import environments

    model = storm_model(problem)
    environment = environments.default(model)
    environment.modelchecker().multi().precision = stormpy.Rational(float(precision))
    query = stormpy.parse_property(f'multi(R{{"r0"}}max=? [C], R{{"r1"}}>={problem.limit!r} [C])')
    found = stormpy.model_checking(model, query, environment=environment, only_initial_states=True)
    return float(found.get_value(problem.transitions.shape[1] + 1))


def storm_model(problem: Problem):  # noqa: ANN201 - a type of Storm's
    """The model with two states more: one to start from, one to stop in."""
    from stormpy import datastructures, models

    pairs, states = problem.transitions.shape
    stop, begin = states, states + 1
    leave = sparse.csr_array(np.full((pairs, 1), 1 - problem.discount))
    moves = sparse.hstack([problem.discount * problem.transitions, leave, sparse.csr_array((pairs, 1))])
    ends = np.zeros((2, states + 2))
    ends[0, stop], ends[1, :states] = 1, problem.initial
    matrix = sparse.csr_array(sparse.vstack([moves, sparse.csr_array(ends)]))
    rows = np.repeat(np.arange(pairs + 2), np.diff(matrix.indptr))
    groups = [*range(0, pairs, problem.actions), pairs, pairs + 1]
    builder = datastructures.SparseMatrixBuilder[float](
        rows=pairs + 2, columns=states + 2, entries=matrix.nnz, has_custom_row_grouping=True, row_groups=states + 2
    )
    builder.add_next_values(rows.tolist(), matrix.indices.tolist(), matrix.data.tolist(), groups)
    labels = models.StateLabeling(states + 2)
    labels.add_label("init")
    labels.add_label_to_state("init", begin)
    rewards = {
        f"r{i}": models.SparseRewardModel[float](
            optional_state_action_reward_vector=np.append(reward, [0, 0]).tolist()
        )
        for i, reward in enumerate(problem.rewards)
    }
    parts = models.SparseModelComponents[float](
        transition_matrix=builder.build(), state_labeling=labels, reward_models=rewards
    )
    return models.SparseMdp[float](parts)


PEERS: dict[str, tuple[Callable[[Problem, str], float], str]] = {
    "HiGHS simplex": (highs, "simplex"),
    "HiGHS IPM": (highs, "ipm"),
    "HiGHS HiPO": (highs, "hipo"),
    "Clarabel": (clarabel, ""),
    "SCS": (scs, ""),
    "Storm 1e-4": (storm, "1e-4"),
    "Storm 1e-6": (storm, "1e-6"),
}


def in_a_process(script: pathlib.Path, words: list[str], limit: float, lines: int = 1) -> str:
    """The last lines that a script prints, or why there are none: a peer may hang, or take all memory.

    ``limit`` counts CPU seconds, which other work on the machine does not change; wall seconds may be twenty times it.
    """
    cpu = lambda: resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))  # noqa: E731
    command = [sys.executable, str(script), *words]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=20 * limit, preexec_fn=cpu)
    except subprocess.TimeoutExpired:
        return f"> {limit:g}"
    if ended.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"> {limit:g}"
    shown = ended.stdout.strip().splitlines()
    return "\n".join(shown[-lines:]) if ended.returncode == 0 and shown else "fails"
