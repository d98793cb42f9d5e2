"""The public function for environments: ``train``.

    run = arnpg.train(arnpg.envs.Acrobot(), arnpg.Constrained("height", at_most={"swing1": 50, "swing2": 50}), seeds=10)

It goes in four small steps, each of which knows nothing of the others:

1. ``recipes.neural.METHODS[method](env, criterion, **settings)`` makes the algorithm: the recipe's own settings, and
   parts of the inner loop by the names of its fields. A new method is a line in ``METHODS``; a new kind of environment
   is a branch in that file's ``_inner`` (its own inner loop, with the same fields where they mean the same).
2. Settings with dots (``rollout.paths``) are replaced inside the inner loop by ``settings.with_setting``; words for
   what is no number are in ``neural.stored.WORDS``.
3. ``loop.run_batch``, or ``runs.trial.run_trial`` where there is a folder, runs all seeds.
4. ``_trained`` turns the run into a ``TrainedRun``; it asks the inner loop for ``values``, ``rollout.steps``,
   ``discount`` and the environment for ``names`` and ``observation_size``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from arnpg.criteria import AbstractCriterion
from arnpg.envs.find import Environment
from arnpg.envs.host import AbstractHostEnvironment
from arnpg.envs.random_play import seed_forgotten
from arnpg.envs.versions import backend_versions
from arnpg.errors import NumericalError, SettingsError
from arnpg.evaluation import Notion
from arnpg.loop import Chunk, Run, run_batch
from arnpg.neural.host_inner_loop import environments_closed
from arnpg.neural.stored import activation_name
from arnpg.plan import Plan, prepare
from arnpg.runs.progress import Progress, Reporter, SilentReporter
from arnpg.runs.trial import About, Every, run_trial
from arnpg.trained import TrainedRun, TrainingTrace
from arnpg.training_notes import not_reproducible, training_notes
from arnpg.training_progress import Teller, TrainingProgress

__all__ = ["ARCHIVE", "carry_out", "train"]

ARCHIVE = "trained.npz"


def train(
    env: Any,
    criterion: AbstractCriterion,
    *,
    objectives: Mapping[str, Callable | str] | None = None,
    method: str | None = None,
    iterations: int = 300,
    seeds: int | Sequence[int] = 1,
    seed: int = 0,
    out: str | os.PathLike | None = None,
    checkpoint_every: float = 30.0,
    checkpoint_iterations: int | None = None,
    resume: str = "strict",
    force: bool = False,
    progress: bool | Callable[[TrainingProgress], None] | None = None,
    **settings: Any,
) -> TrainedRun:
    """Train policies in an environment, one for each seed; the same seed, the same policy.

    Args:
        env: an environment of the device, such as ``arnpg.envs.Acrobot()``; or any of Gymnasium: its id, its class, a
            function that makes one, or what ``arnpg.envs.make_host`` returns.
        criterion: what "best" means, in the environment's objectives.
        objectives: functions of a transition by name, in the place of the environment's own; for Gymnasium's also
            ``"reward"``, ``"reward[1]"`` or ``"info:key"``.
        method: ``"arnpg-epd"``, ``"arnpg-epd-steady"``, ``"arnpg-imd"``, ``"arnpg-omda"``, ``"npg-pd"``, ``"crpo"`` or
            ``"mo-npg"``, with steps within a trust region; ``"arppo-epd"``, ``"arppo-imd"``, ``"arppo-omda"`` or
            ``"focops"``, with proximal ones. Without it ARNPG-EPD where there are limits, for ``MaxMin`` ARNPG-OMDA,
            else ARNPG-IMD.
        iterations: micro steps, each on one batch of the environment; as many as make whole macro steps, at least one.
        seeds: how many runs, from ``seed`` on, or which.
        seed: the first one.
        out: a folder to keep the run in; the same call continues it after any kind of end, and returns what is there
            when it is finished.
        checkpoint_every: seconds.
        checkpoint_iterations: also after so many iterations, at the end of a compiled call of about half a second.
        resume: ``"auto"`` goes back to the checkpoint before a damaged one; ``"strict"`` refuses.
        force: continue although the packages that step the environment have other versions than the run began with.
        progress: a function of ``TrainingProgress``, or whether to show a bar; without it where there is a terminal.
        settings: of the method and of parts of the inner loop: ``dual_step=1e-3``, ``rollout=Rollout(20, 500)``, or
            with dots ``**{"rollout.paths": 20}``; see ``arnpg.recipes.neural``. For an environment of Gymnasium by id,
            class or function also those of ``arnpg.envs.make_host``: ``backend``, ``time_limit``, ``options``, ...
    """
    plan = prepare(
        env, criterion, objectives=objectives, method=method, iterations=iterations, seeds=seeds, seed=seed, **settings
    )
    show = progress if callable(progress) else None
    wanted = sys.stderr.isatty() if progress is None else bool(progress) and show is None
    with Progress({"training": 1.0}, quiet=not wanted) as bar:
        reporter = bar.part("training") if wanted else SilentReporter()
        every = _every(checkpoint_every, checkpoint_iterations, plan.step_iterations)
        return carry_out(plan, out, every, resume, reporter, show, force=force)


def carry_out(
    plan: Plan,
    out: str | os.PathLike | None = None,
    every: Every = Every(),  # noqa: B008
    resume: str = "strict",
    reporter: Reporter | None = None,
    show: Callable[[TrainingProgress], None] | None = None,
    command: Mapping[str, Any] | None = None,
    parents: bool = False,
    force: bool = False,
) -> TrainedRun:
    """Run a plan, in a folder where one is given; ``command`` is what `arnpg resume` makes the plan from again."""
    told, reporter = _checked(plan, Teller(plan, show)), reporter or SilentReporter()
    parted, keys = _parted(plan.env, reporter), jax.numpy.stack([jax.random.key(seed) for seed in plan.seeds])
    doing = {"algorithms": [plan.algorithm] * len(plan.seeds), "steps": plan.steps, "keys": keys}
    with environments_closed(plan.algorithm.inner):
        if out is None:
            on_chunk = lambda chunk: reporter.update(chunk.done / chunk.steps, told(chunk))  # noqa: E731
            return _trained(plan, run_batch(**doing, on_chunk=on_chunk), parted)
        activation_name(jax.eval_shape(plan.algorithm.inner.start, keys[0])[0])
        ran = run_trial(
            out,
            **doing,
            checkpoint_every=every,
            resume=resume,
            force=force,
            config=_config(plan, command),
            seed=plan.seeds[0],
            progress=reporter,
            parents=parents,
            kind="train",
            about=_about(plan, told, parted),
        )
    return _trained(plan, ran, parted)


def _parted(env: Environment, reporter: Reporter) -> str | None:
    """Where the same seed leads another way, told at once; environments of the device cannot."""
    parted = seed_forgotten(env) if isinstance(env, AbstractHostEnvironment) else None
    if parted is not None:
        reporter.say(not_reproducible(parted))
    return parted


def _config(plan: Plan, command: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the run's ``config.json`` records."""
    return {
        "environment": _name(plan.env),
        "criterion": plan.words.describe(plan.env.names),
        "method": plan.method,
        "seeds": list(plan.seeds),
        "settings": plan.settings,
        **({"command": command} if command is not None else {}),
    }


def _about(plan: Plan, told: Callable[[Chunk], str], parted: str | None) -> About:
    """Names of the trace's entries, the progress in words, the archive at the end, and what steps the environment."""
    return About(
        entries={"values": plan.env.names, "weights": plan.env.names, "dual": plan.words.constraint_labels()},
        describe=told,
        conclude=lambda folder, ran: _trained(plan, ran, parted).save(folder / ARCHIVE),
        environment=backend_versions(plan.env) if isinstance(plan.env, AbstractHostEnvironment) else {},
        facts={"reproducible": parted is None},
    )


def _checked(plan: Plan, told: Callable[[Chunk], str]) -> Callable[[Chunk], str]:
    """``told``, but not of values where the objective is no number, nor of weights that no step can follow."""

    def tell(chunk: Chunk) -> str:
        values = np.asarray(chunk.trace.values, float)
        bad = np.argwhere(~np.isfinite(chunk.trace.weights).all(axis=-1) | ~np.isfinite(_objectives(plan, values)))
        if len(bad):
            seen, weights = (part[tuple(bad[0])].tolist() for part in (values, chunk.trace.weights))
            named = ", ".join(f"{name} {value:.4g}" for name, value in zip(plan.env.names, seen, strict=True))
            raise NumericalError(
                f"the ascent weights are {weights} at values of {named}: the objective has no finite value or gradient "
                "there. ProportionalFair needs values above 0: name those that are (--fair NAME ...), or give an "
                "offset (--offset)."
            )
        return told(chunk)

    return tell


def _objectives(plan: Plan, values: np.ndarray) -> np.ndarray:
    """``F(V)`` of values ``(n, K, m)``; a logarithm of what is not above 0 is told elsewhere."""
    flat = values.reshape(-1, values.shape[-1])
    with np.errstate(all="ignore"):
        return np.array([float(plan.criterion.value(row)) for row in flat]).reshape(values.shape[:2])


def _every(seconds: float, iterations: int | None, step_iterations: int) -> Every:
    if iterations is None:
        return Every(seconds)
    if isinstance(iterations, bool) or not iterations >= 1:
        raise SettingsError(f"checkpoint_iterations must be at least 1, got {iterations}; or give checkpoint_every.")
    return Every(seconds, max(iterations / step_iterations, 1))


def _trace(plan: Plan, ran: Run) -> TrainingTrace:
    rows = ran.trace
    values = np.asarray(rows.values, float)
    slack = values @ np.asarray(plan.criterion.rows).T - np.asarray(plan.criterion.thresholds)
    return TrainingTrace(
        iterations=np.cumsum(rows.micro_steps[0]),
        env_steps=np.cumsum(rows.inner.env_steps[0]),
        values=values,
        objective=_objectives(plan, values),
        slack=slack,
        weights=rows.weights,
        dual=rows.dual,
        kl=rows.inner.kl,
        entropy=rows.inner.entropy,
        episode_length=np.asarray(rows.inner.episode_length),
        faults=np.zeros_like(rows.inner.kl, int) if rows.inner.faults is None else np.asarray(rows.inner.faults),
    )


def _trained(plan: Plan, ran: Run, parted: str | None) -> TrainedRun:
    parts: Any = plan.algorithm.inner
    notions = parts.values if isinstance(parts.values, tuple) else (parts.values,) * len(plan.env.names)
    notion, trace = Notion(notions, parts.rollout.steps, parts.discount), _trace(plan, ran)
    return TrainedRun(
        environment=_name(plan.env),
        criterion=plan.words.describe(plan.env.names),
        method=plan.method,
        names=plan.env.names,
        labels=plan.words.constraint_labels(),
        rows=np.asarray(plan.criterion.rows),
        thresholds=np.asarray(plan.criterion.thresholds),
        seeds=plan.seeds,
        settings=plan.settings,
        observation_size=plan.env.observation_size,
        notion=notion,
        trace=trace,
        last=ran.last,
        best=ran.best,
        seconds=ran.seconds,
        reproducible=parted is None,
        notes=training_notes(trace, notion, plan.env.time_limit, parted),
    )


def _name(env: Environment) -> str:
    if isinstance(env, AbstractHostEnvironment):
        return env.label
    return f"{type(env).__module__}:{type(env).__qualname__}"
