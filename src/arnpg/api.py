"""The public functions for known models: ``solve`` and ``evaluate``."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from arnpg.criteria import AbstractCriterion
from arnpg.errors import ObjectiveError, SettingsError
from arnpg.loop import Chunk, Run, Watch, run
from arnpg.objectives import Criterion
from arnpg.recipes import METHODS
from arnpg.solution import Candidate, Solution, Trace
from arnpg.tabular.choice import kernel_of
from arnpg.tabular.column_generation import Columns, Round
from arnpg.tabular.exact import occupancy
from arnpg.tabular.kernel import AbstractKernel
from arnpg.tabular.masks import folded, without_mask
from arnpg.tabular.mdp import MDP
from arnpg.tabular.policy import TabularPolicy
from arnpg.tabular.solve import Solved, objective_error, relative_scale, solve_to_gap

__all__ = ["Progress", "evaluate", "solve"]

DEFAULT_METHOD = "arnpg"
DEFAULT_STEPS = 300
MAX_ROUNDS = 1000
ROUNDING = 1e-8  # a violation below this, relative to the range of values, is rounding


class Progress(NamedTuple):
    """What a progress callback is shown."""

    step: int
    steps: int | None
    values: np.ndarray
    objective: float
    violation: float
    gap: float
    seconds: float
    left: float | None = None  # seconds, estimated


def solve(
    mdp: MDP,
    criterion: AbstractCriterion,
    *,
    method: str = DEFAULT_METHOD,
    gap: float = 1e-6,
    steps: int | None = None,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    devices: Sequence[Any] | None = None,
    **settings: Any,
) -> Solution:
    """The best single policy of a known model, with a bound on how far from the optimum it can be.

    Args:
        mdp: the model.
        criterion: what "best" means: ``Constrained``, ``ProportionalFair``, ``MaxMin``, ``Linear`` or ``Concave``.
        method: ``"arnpg"`` (ARNPG with a corrective master, stops at ``gap``) or one of the paper's plain algorithms,
            ``"arnpg-imd"``, ``"arnpg-epd"``, ``"arnpg-omda"``, ``"npg-pd"``, ``"crpo"``, ``"mo-npg"``.
        gap: the relative gap to certify.
        steps: macro steps at most; 300 for the plain algorithms, which also stop where the gap is reached.
        time_limit: seconds at most.
        progress: called with a ``Progress`` now and then.
        devices: JAX devices, of one or several processes, over which the transitions of a sparse model are spread by
            states; the host's cores where it is left out.
        settings: settings of a plain algorithm, such as ``step_size=4.5``; see ``arnpg.recipes``.

    Raises:
        InfeasibleError: with a proof, where no policy meets the constraints.
    """
    _check(mdp, criterion, method, gap, steps, time_limit, settings)
    bound_criterion = criterion.bind(mdp.names)
    limit = math.inf if time_limit is None else time_limit
    if method == DEFAULT_METHOD:
        rounds = steps or MAX_ROUNDS
        return solve_corrective(
            kernel_of(mdp, devices), criterion, gap=gap, rounds=rounds, limit=limit, progress=progress
        )
    return _solve_plain(mdp, criterion, bound_criterion, method, gap, steps or DEFAULT_STEPS, limit, progress, settings)


def evaluate(mdp: MDP, policy: TabularPolicy | np.ndarray) -> dict[str, float]:
    """The exact values of a policy, by name."""
    table = policy if isinstance(policy, TabularPolicy) else TabularPolicy(policy)
    if table.probabilities.shape != (mdp.states, mdp.actions):
        shape = table.probabilities.shape
        raise SettingsError(f"policy must have shape (S, A) = ({mdp.states}, {mdp.actions}), got {shape}.")
    if mdp.allowed is not None and table.probabilities[~mdp.allowed].any():
        state, action = np.argwhere(~mdp.allowed & (table.probabilities > 0))[0]
        raise SettingsError(f"policy[{state}, {action}] must be 0: the action is not allowed in that state.")
    point = kernel_of(mdp).evaluate(table.probabilities)
    return _named(mdp, point.values)


def solve_corrective(
    kernel: AbstractKernel,
    words: AbstractCriterion,
    *,
    gap: float,
    rounds: int = MAX_ROUNDS,
    limit: float = math.inf,
    progress: Callable[[Progress], None] | None = None,
    columns: Columns | None = None,
) -> Solution:
    """``solve`` by column generation; ``columns`` are points known from other criteria, and grow in place."""
    began, mdp = time.monotonic(), kernel.mdp
    criterion = words.bind(mdp.names)
    pace = _Pace(0.5 * gap)

    def show(shown: Round) -> None:
        if progress is not None:
            violation = float(criterion.violation(shown.values))
            left = pace(shown.gap / relative_scale(criterion, shown.values, 0.0), shown.seconds)
            progress(
                Progress(
                    shown.number + 1, None, shown.values, shown.objective, violation, shown.gap, shown.seconds, left
                )
            )

    solved = solve_to_gap(
        kernel, criterion, gap=gap, max_rounds=rounds, time_limit=limit, progress=show, columns=columns
    )
    policy = TabularPolicy(solved.policy)
    found = Candidate(
        policy, solved.values, float(criterion.value(solved.values)), float(criterion.violation(solved.values))
    )
    trace = _rounds_trace(criterion, solved.rounds)
    how = f"column generation, {len(solved.rounds)} rounds, last bound from policy iteration's Bellman residual"
    seconds = time.monotonic() - began
    return _solution(mdp, words, criterion, "arnpg", found, solved, gap, {}, trace, how, list(solved.notes), seconds)


class _Pace:
    """Seconds left, if the gap goes on falling by the same factor a second as it has so far."""

    def __init__(self, target: float) -> None:
        self._target, self._first = target, (math.inf, 0.0)

    def __call__(self, gap: float, seconds: float) -> float | None:
        """From the relative gap reached after ``seconds``; none while it cannot be told."""
        if not math.isfinite(self._first[0]):
            self._first = (gap, seconds)
        first, began = self._first
        if not 0 < gap < first or not math.isfinite(first):
            return None
        rate = math.log(first / gap) / max(seconds - began, 1e-9)
        return max(math.log(gap / self._target), 0.0) / rate


def _solve_plain(
    mdp: MDP,
    words: AbstractCriterion,
    criterion: Criterion,
    method: str,
    gap: float,
    steps: int,
    limit: float,
    progress: Callable[[Progress], None] | None,
    settings: dict[str, Any],
) -> Solution:
    began = time.monotonic()
    algorithm = METHODS[method](without_mask(mdp), criterion, **settings)
    kernel = kernel_of(mdp)
    reference = solve_to_gap(kernel, criterion, gap=0.1 * gap, max_rounds=MAX_ROUNDS, time_limit=limit)

    def on_chunk(chunk: Chunk) -> bool:
        if progress is not None:
            values = chunk.trace.values[-1]
            objective, violation = float(criterion.value(values)), float(criterion.violation(values))
            gap_now = reference.bound - objective
            progress(Progress(chunk.done, steps, values, objective, violation, gap_now, chunk.seconds))
        best = chunk.carry.tally
        enough = 0.5 * gap * relative_scale(criterion, reference.values, 0.0)
        return float(best.violation) == 0 and reference.bound - float(best.objective) <= enough

    ran = run(algorithm, steps, watch=Watch(mean=occupancy), on_chunk=on_chunk, time_limit=limit)
    candidates = _candidates(kernel, criterion, ran)
    found = min(candidates.values(), key=lambda c: (max(c.violation, ROUNDING), -c.objective))
    notes = list(reference.notes) + _theory_notes(mdp, algorithm.inner)
    how = f"column generation to {0.1 * gap:.0e}, beside {method}"
    trace = _run_trace(criterion, ran)
    seconds = time.monotonic() - began
    return _solution(mdp, words, criterion, method, found, reference, gap, candidates, trace, how, notes, seconds)


def _solution(
    mdp: MDP,
    words: AbstractCriterion,
    criterion: Criterion,
    method: str,
    found: Candidate,
    reference: Solved,
    gap: float,
    candidates: dict[str, Candidate],
    trace: Trace,
    how: str,
    notes: list[str],
    seconds: float,
) -> Solution:
    if method == DEFAULT_METHOD:
        error = reference.error
    else:
        error = objective_error(kernel_of(mdp), criterion, found.policy.probabilities)
    distance = max(reference.bound - found.objective, 0.0) + error
    relative = distance / relative_scale(criterion, found.values, reference.floor)
    ranges = float(mdp.reward_ranges.max()) / (1 - mdp.discount)
    feasible = found.violation <= ROUNDING * max(ranges, 1e-300)
    prices = dict(zip(words.constraint_labels(), map(float, reference.multipliers), strict=True))
    return Solution(
        method=method,
        criterion=words.describe(mdp.names),
        values=_named(mdp, found.values),
        objective=found.objective,
        violation=found.violation,
        multipliers=prices,
        gap=distance,
        relative_gap=relative,
        certified=bool(relative <= gap and feasible),
        how=how,
        policy=found.policy,
        candidates=candidates,
        trace=trace,
        notes=tuple([*mdp.notes, *notes]),
        seconds=seconds,
    )


def _candidates(kernel: AbstractKernel, criterion: Criterion, ran: Run) -> dict[str, Candidate]:
    """The average as one stationary policy, the best iterate, the last iterate; each evaluated exactly."""
    joint = np.maximum(ran.mean, 0.0) + 1e-300
    tables = {
        "average": joint / joint.sum(axis=1, keepdims=True),
        "best": np.exp(ran.best.log_policy),
        "last": np.exp(ran.last.log_policy),
    }
    found = {}
    for name, table in tables.items():
        policy = TabularPolicy(folded(table, kernel.mdp.allowed))
        values = kernel.evaluate(policy.probabilities).values
        found[name] = Candidate(policy, values, float(criterion.value(values)), float(criterion.violation(values)))
    return found


def _run_trace(criterion: Criterion, ran: Run) -> Trace:
    rows = ran.trace
    objective = np.array([float(criterion.value(values)) for values in rows.values])
    violation = np.array([float(criterion.violation(values)) for values in rows.values])
    seconds = np.linspace(0, ran.seconds, len(objective) + 1)[1:]
    return Trace(
        values=rows.values,
        objective=objective,
        violation=violation,
        weights=rows.weights,
        dual=rows.dual,
        micro_steps=rows.micro_steps,
        kl=rows.inner.kl,
        entropy=rows.inner.entropy,
        bound=np.zeros(0),
        seconds=seconds,
    )


def _rounds_trace(criterion: Criterion, rounds: list[Round]) -> Trace:
    column = lambda name: np.array([getattr(shown, name) for shown in rounds])  # noqa: E731
    return Trace(
        values=column("values"),
        objective=column("objective"),
        violation=np.array([float(criterion.violation(shown.values)) for shown in rounds]),
        weights=column("weights"),
        dual=column("multipliers"),
        micro_steps=np.diff(column("evaluations"), prepend=0),
        kl=np.zeros(0),
        entropy=np.zeros(0),
        bound=column("bound"),
        seconds=column("seconds"),
    )


def _theory_notes(mdp: MDP, inner: Any) -> list[str]:
    if inner.step_size * inner.regularisation > (1 - mdp.discount) * (1 + 1e-12):
        return ["theory: not guaranteed, step_size is above (1 - discount) / regularisation"]
    return []


def _named(mdp: MDP, values: np.ndarray) -> dict[str, float]:
    return dict(zip(mdp.names, map(float, values), strict=True))


def _check(
    mdp: Any, criterion: Any, method: str, gap: float, steps: int | None, time_limit: float | None, settings: dict
) -> None:
    if not isinstance(mdp, MDP):
        raise SettingsError(f"mdp must be an arnpg.MDP, got {type(mdp).__name__}; build one from your arrays.")
    if not isinstance(criterion, AbstractCriterion):
        raise ObjectiveError(
            f"criterion must be Constrained, ProportionalFair, MaxMin, Linear or Concave, got {criterion!r}."
        )
    if method != DEFAULT_METHOD and method not in METHODS:
        raise SettingsError(f"method must be one of {', '.join([DEFAULT_METHOD, *METHODS])}, got {method!r}.")
    if not (isinstance(gap, int | float) and 0 < gap < 1):
        raise SettingsError(f"gap must be in (0, 1), got {gap!r}; it is relative, 1e-6 by default.")
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
        raise SettingsError(f"steps must be a whole number >= 1, got {steps!r}.")
    if time_limit is not None and not time_limit > 0:
        raise SettingsError(f"time_limit must be > 0 seconds, got {time_limit!r}; leave it out for none.")
    known = [] if method == DEFAULT_METHOD else list(METHODS[method].__kwdefaults__ or {})
    for name in settings:
        if name not in known:
            raise SettingsError(f"{name!r} is not a setting of {method!r}; it has {', '.join(known) or 'none'}.")
