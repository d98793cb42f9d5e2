"""The public functions ``solve``, for known models, and ``evaluate``, for models and environments."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from arnpg.corrective import (
    DEFAULT_METHOD,
    MAX_ROUNDS,
    ROUNDING,
    Progress,
    Told,
    answer,
    candidate,
    named,
    solve_corrective,
)
from arnpg.criteria import AbstractCriterion
from arnpg.errors import ObjectiveError, SettingsError
from arnpg.loop import Chunk, Run, Watch, run
from arnpg.objectives import Criterion
from arnpg.recipes.tabular import METHODS
from arnpg.solution import Candidate, Solution, Trace
from arnpg.tabular.blas import one_blas_thread
from arnpg.tabular.choice import kernel_of
from arnpg.tabular.exact import occupancy
from arnpg.tabular.kernel import AbstractKernel
from arnpg.tabular.masks import folded, without_mask
from arnpg.tabular.mdp import MDP
from arnpg.tabular.policy import TabularPolicy
from arnpg.tabular.solve import Solved, objective_error, relative_scale, solve_to_gap

if TYPE_CHECKING:
    from arnpg.envs.env import AbstractEnvironment
    from arnpg.evaluation import Evaluation
    from arnpg.trained import TrainedRun

__all__ = ["Progress", "evaluate", "solve"]

DEFAULT_STEPS = 300
RUNAWAY = 100.0  # a dual variable this many times above its price, or the scale of prices, is told


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
    checkpoint: str | os.PathLike | None = None,
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
        checkpoint: a file in which the default method keeps the policies it has seen; where the file exists, it goes
            on from them.
        settings: settings of a plain algorithm, such as ``step_size=4.5``; see ``arnpg.recipes.tabular``.

    Raises:
        InfeasibleError: with a proof, where no policy meets the constraints.
    """
    _check(mdp, criterion, method, gap, steps, time_limit, settings)
    bound_criterion = criterion.bind(mdp.names)
    limit = math.inf if time_limit is None else time_limit
    with one_blas_thread(mdp.states):
        if method == DEFAULT_METHOD:
            kernel, rounds = kernel_of(mdp, devices), steps or MAX_ROUNDS
            return solve_corrective(
                kernel, criterion, gap=gap, rounds=rounds, limit=limit, progress=progress, checkpoint=checkpoint
            )
        if checkpoint is not None:
            raise SettingsError(f"checkpoint goes with the default method, got method={method!r}; leave one out.")
        rounds = steps or DEFAULT_STEPS
        return _solve_plain(mdp, criterion, bound_criterion, method, gap, rounds, limit, progress, settings)


@overload
def evaluate(model: MDP, policy: TabularPolicy | np.ndarray) -> dict[str, float]: ...


@overload
def evaluate(model: AbstractEnvironment, policy: TrainedRun, **settings: Any) -> Evaluation: ...


def evaluate(model: Any, policy: Any, **settings: Any) -> Any:
    """What a policy is worth: in a known model exactly, by name; in an environment on fresh episodes.

    For an environment ``policy`` is a ``TrainedRun``, and ``settings`` are those of its ``evaluate``: ``episodes``,
    ``seed``, ``deterministic``, ``which``.
    """
    if not isinstance(model, MDP):
        from arnpg.trained import evaluate_run

        return evaluate_run(model, policy, **settings)
    if settings:
        raise SettingsError(f"{next(iter(settings))!r} is for environments; a known model is evaluated exactly.")
    return _policy_values(model, policy)


def _policy_values(mdp: MDP, policy: TabularPolicy | np.ndarray) -> dict[str, float]:
    """The exact values of a policy, by name."""
    table = policy if isinstance(policy, TabularPolicy) else TabularPolicy(policy)
    if table.probabilities.shape != (mdp.states, mdp.actions):
        shape = table.probabilities.shape
        raise SettingsError(f"policy must have shape (S, A) = ({mdp.states}, {mdp.actions}), got {shape}.")
    if mdp.allowed is not None and table.probabilities[~mdp.allowed].any():
        state, action = np.argwhere(~mdp.allowed & (table.probabilities > 0))[0]
        raise SettingsError(f"policy[{state}, {action}] must be 0: the action is not allowed in that state.")
    with one_blas_thread(mdp.states):
        return named(mdp, kernel_of(mdp).evaluate(table.probabilities).values)


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
            progress(_shown(criterion, reference.bound, steps, chunk))
        best = chunk.carry.tally
        enough = 0.5 * gap * relative_scale(criterion, reference.values, 0.0)
        return float(best.violation) == 0 and reference.bound - float(best.objective) <= enough

    ran = run(algorithm, steps, watch=Watch(mean=occupancy), on_chunk=on_chunk, time_limit=limit)
    candidates = _candidates(kernel, criterion, ran)
    found = min(candidates.values(), key=lambda c: (max(c.violation, ROUNDING), -c.objective))
    notes = list(reference.notes) + _theory_notes(mdp, algorithm.inner)
    notes += _dual_notes(mdp, words, criterion, reference, ran.trace.dual)
    how = f"column generation to {0.1 * gap:.0e}, beside {method}"
    error = objective_error(kernel, criterion, found.policy.probabilities)
    told = Told(method, how, candidates, _run_trace(criterion, ran), notes, time.monotonic() - began)
    return answer(mdp, words, found, reference, error, gap, told)


def _shown(criterion: Criterion, bound: float, steps: int, chunk: Chunk) -> Progress:
    """The last iterate of a chunk."""
    values = chunk.trace.values[-1]
    objective, violation = float(criterion.value(values)), float(criterion.violation(values))
    return Progress(chunk.done, steps, values, objective, violation, bound - objective, chunk.seconds)


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
        found[name] = candidate(criterion, policy, kernel.evaluate(policy.probabilities).values)
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


def _theory_notes(mdp: MDP, inner: Any) -> list[str]:
    if inner.step_size * inner.regularisation > (1 - mdp.discount) * (1 + 1e-12):
        return ["theory: not guaranteed, step_size is above (1 - discount) / regularisation"]
    return []


def _dual_notes(
    mdp: MDP, words: AbstractCriterion, criterion: Criterion, reference: Solved, dual: np.ndarray
) -> list[str]:
    """Dual variables far above the prices they should come to; a method without limits has none."""
    if dual.shape[1] != len(criterion.thresholds):
        return []
    size = relative_scale(criterion, reference.values, reference.floor)
    ranges = np.abs(np.asarray(criterion.rows)) @ mdp.reward_ranges / (1 - mdp.discount)
    usual = reference.multipliers + size / np.maximum(ranges, 1e-300)
    labels = words.constraint_labels()
    return [
        f"the dual variable of {labels[i]} reached {dual[:, i].max():.3g}, where its price is "
        f"{reference.multipliers[i]:.3g}: lower dual_step or step_size"
        for i in np.flatnonzero(dual.max(axis=0) > RUNAWAY * usual)
    ]


def _check(
    mdp: Any, criterion: Any, method: str, gap: float, steps: int | None, time_limit: float | None, settings: dict
) -> None:
    if not isinstance(mdp, MDP):
        raise SettingsError(f"mdp must be an arnpg.MDP, got {type(mdp).__name__}; build one from your arrays.")
    if not isinstance(criterion, AbstractCriterion):
        raise ObjectiveError(
            f"criterion must be Constrained, ProportionalFair, MaxMin, Linear or Concave, got {criterion!r}."
        )
    for name, discount in criterion.discounts().items():
        if discount != mdp.discount:
            raise ObjectiveError(
                f"the limit on {name!r} is discounted by {discount:g}, but the model's values are by "
                f"{mdp.discount:g}; give a plain number."
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
