"""What training returns: policies of every seed, their values with intervals, and how they came about."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from arnpg.archive import read_archive, write_archive
from arnpg.envs.find import find_environment
from arnpg.errors import ModelError, SettingsError
from arnpg.evaluation import Evaluation, Notion, evaluation
from arnpg.intervals import Interval, interval
from arnpg.neural.actor import Actor
from arnpg.neural.networks import AbstractPolicy
from arnpg.neural.stored import policy_from_arrays, policy_to_arrays, value_from_word, word_of_value

__all__ = ["KIND", "TAIL", "TrainedRun", "TrainingTrace", "evaluate_run"]

TAIL = 20  # iterations whose mean is a run's final value
KIND = "trained run"
WHICH = ("best", "last")


@dataclasses.dataclass(frozen=True)
class TrainingTrace:
    """One row for each macro step, as estimated from the batches of the training: ``n`` seeds, ``K`` steps.

    Attributes:
        iterations: micro steps so far, ``(K,)``.
        env_steps: environment steps so far, ``(K,)``.
        values: ``V_{1:m}`` of each iterate, in the user's units and sign, ``(n, K, m)``.
        objective: ``F(V)``, ``(n, K)``.
        slack: how far each limit is kept, negative where it is broken, ``(n, K, c)``.
        weights: the ascent weights ``G_k``, ``(n, K, m)``.
        dual: the dual variables, ``(n, K, d)``.
        kl: of the iterate to its anchor, ``(n, K)``.
        entropy: of the iterate, ``(n, K)``.
        episode_length: mean steps of the episodes in the iterate's batch, ``(n, K)``.
        faults: episodes lost in the batches of the step, ``(n, K)``: the environment broke, and was begun anew.
    """

    iterations: np.ndarray
    env_steps: np.ndarray
    values: np.ndarray
    objective: np.ndarray
    slack: np.ndarray
    weights: np.ndarray
    dual: np.ndarray
    kl: np.ndarray
    entropy: np.ndarray
    episode_length: np.ndarray
    faults: np.ndarray

    def __len__(self) -> int:
        """``K``."""
        return len(self.iterations)


@dataclasses.dataclass(frozen=True)
class TrainedRun:
    """The result of ``arnpg.train``: one policy a seed, twice.

    Attributes:
        environment: what it was trained on.
        criterion: in words.
        method: the algorithm's name.
        names: of the objectives.
        labels: of the limits, such as ``swing1 <= 50``.
        rows: of the limits, ``(c, m)``, with ``thresholds``: kept where ``rows @ values >= thresholds``.
        thresholds: see ``rows``.
        seeds: of the runs.
        settings: of method and inner loop, those that were given.
        observation_size: what a policy expects.
        notion: how an episode is valued.
        trace: how it came about.
        last: the last policies, parameters with a leading axis of seeds.
        best: of each seed the best policy seen, feasible before infeasible, by the batch it was seen on.
        seconds: wall time.
        reproducible: whether the same call leads here again, as far as a short look at the environment can tell.
        notes: what a reader of the numbers should know.
    """

    environment: str
    criterion: str
    method: str
    names: tuple[str, ...]
    labels: tuple[str, ...]
    rows: np.ndarray
    thresholds: np.ndarray
    seeds: tuple[int, ...]
    settings: dict[str, Any]
    observation_size: int
    notion: Notion
    trace: TrainingTrace
    last: AbstractPolicy
    best: AbstractPolicy
    seconds: float
    reproducible: bool = True
    notes: tuple[str, ...] = ()

    @property
    def final(self) -> np.ndarray:
        """The mean of the values over the last 20 iterations, ``(n, m)``."""
        return self.trace.values[:, self._tail()].mean(axis=1)

    @property
    def values(self) -> dict[str, Interval]:
        """``final`` by name: its mean and 95 % interval over seeds."""
        return {name: interval(self.final[:, i]) for i, name in enumerate(self.names)}

    @property
    def violations(self) -> dict[str, np.ndarray]:
        """By how much each seed's final value breaks each limit; 0 where it is kept."""
        slack = self.final @ self.rows.T - self.thresholds
        return {label: np.maximum(-slack[:, i], 0.0) for i, label in enumerate(self.labels)}

    @property
    def feasible(self) -> np.ndarray:
        """Whether each seed's final values keep all limits."""
        return np.asarray((self.final @ self.rows.T >= self.thresholds).all(axis=1))

    def policy(self, seed: int | None = None, which: str = "last") -> Actor:
        """The policy of a seed (default: the first), to act with: ``run.policy()(observations)``."""
        if which not in WHICH:
            raise SettingsError(f"which must be one of {', '.join(WHICH)}, got {which!r}.")
        if seed is not None and seed not in self.seeds:
            raise SettingsError(f"seed must be one of {', '.join(map(str, self.seeds))}, got {seed}.")
        index = 0 if seed is None else self.seeds.index(seed)
        return Actor(jax.tree.map(lambda leaf: leaf[index], getattr(self, which)), self.observation_size)

    def summary(self) -> str:
        """A table for a terminal."""
        rows = [("environment", self.environment), ("criterion", self.criterion), ("method", self.method)]
        count = f"{len(self.seeds)} seed{'s' if len(self.seeds) > 1 else ''}"
        rows += [("trained", f"{count}, {self.trace.iterations[-1]} iterations, {self.trace.env_steps[-1]:,} steps")]
        rows += [(name, str(value)) for name, value in self.values.items()]
        rows += [
            (label, f"kept by {int((broken == 0).sum())} of {len(broken)}, worst by {broken.max():.3g}")
            for label, broken in self.violations.items()
        ]
        if self.labels:
            rows += [("all limits", f"kept by {int(self.feasible.sum())} of {len(self.seeds)}")]
        duals = self.trace.dual[:, -1].mean(axis=0)
        if len(duals) == len(self.labels):
            rows += [(f"multiplier of {label}", f"{v:.4g}") for label, v in zip(self.labels, duals, strict=True)]
        rows += [("episode", f"{self.trace.episode_length[:, self._tail()].mean():.0f} steps")]
        rows += [("seconds", f"{self.seconds:.1f}"), *(("note", text) for text in self.notes)]
        width = max(len(label) for label, _ in rows)
        note = f"Values are means of the last {TAIL} iterations of the training's own batches, intervals over seeds."
        return "\n".join([*(f"{label:<{width}}  {text}" for label, text in rows), note])

    def plot(self, path: str | os.PathLike | None = None) -> Any:
        """Draw values, limits and multipliers against iterations; returns the matplotlib figure."""
        from arnpg.report.trained_chapter import draw_training

        return draw_training(self, path)

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one ``.npz`` file without pickle; ``TrainedRun.load`` and ``arnpg.load`` read it."""
        header = {name: getattr(self, name) for name in (*_PLAIN, *_LATER)}
        words = [word_of_value(value) for value in self.notion.values]
        header["notion"] = {"values": words, "path_steps": self.notion.path_steps, "discount": self.notion.discount}
        arrays = {f"trace/{f.name}": getattr(self.trace, f.name) for f in dataclasses.fields(TrainingTrace)}
        arrays |= {"rows": np.asarray(self.rows), "thresholds": np.asarray(self.thresholds)}
        for which in WHICH:
            header[which], own = policy_to_arrays(getattr(self, which))
            arrays |= {f"{which}/{name}": array for name, array in own.items()}
        write_archive(path, KIND, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike) -> TrainedRun:
        """Read what ``save`` wrote."""
        header, arrays = read_archive(path, KIND)
        try:
            arrays.setdefault("trace/faults", np.zeros_like(arrays["trace/kl"], int))  # older files have none
            trace = TrainingTrace(**{f.name: arrays[f"trace/{f.name}"] for f in dataclasses.fields(TrainingTrace)})
            read = lambda which: policy_from_arrays(header[which], _under(arrays, which))  # noqa: E731
            policies: dict[str, Any] = {which: read(which) for which in WHICH}
            notion = header["notion"]
            values = tuple(value_from_word(word) for word in notion["values"])
            plain: dict[str, Any] = {name: header[name] for name in _PLAIN}
            limits: dict[str, Any] = {name: arrays[name] for name in ("rows", "thresholds")}
        except KeyError as error:
            raise ModelError(f"{path} is not a complete file of a trained run: {error} is missing.") from error
        plain |= {name: header[name] for name in _LATER if name in header}
        plain |= {name: tuple(plain[name]) for name in ("names", "labels", "seeds", "notes") if name in plain}
        held = Notion(values, notion["path_steps"], notion["discount"])
        return cls(**plain, **limits, **policies, notion=held, trace=trace)

    def _tail(self) -> slice:
        """The macro steps of the last iterations; at least one."""
        first = int(np.searchsorted(self.trace.iterations, self.trace.iterations[-1] - TAIL, side="right"))
        return slice(min(first, len(self.trace) - 1), None)


def evaluate_run(
    env: Any,
    run: TrainedRun,
    *,
    objectives: Mapping[str, Any] | None = None,
    episodes: int = 100,
    seed: int = 0,
    deterministic: bool = False,
    which: str = "last",
    **options: Any,
) -> Evaluation:
    """Play fresh episodes with every policy of a run.

    Args:
        env: what it was trained on, or something with the same observations, actions and objectives; anything that
            ``train`` takes.
        run: the policies, and what an episode is.
        objectives: as given to ``train``.
        episodes: for each policy.
        seed: of the episodes; the same seed, the same numbers.
        deterministic: take the most probable actions instead of drawing them.
        which: ``"last"`` or ``"best"``.
        options: as given to ``train`` for an environment of Gymnasium: ``backend``, ``time_limit``, ...
    """
    if not isinstance(run, TrainedRun):
        raise SettingsError(f"policy must be a TrainedRun for an environment, got {type(run).__name__}.")
    env = find_environment(env, objectives, **options)
    if env.names != run.names or env.observation_size != run.observation_size:
        raise SettingsError(
            f"the run was trained for {run.names}, but the environment has {env.names}; give the one it was trained on."
        )
    policies = [run.policy(number, which).policy for number in run.seeds]
    return evaluation(
        env,
        policies,
        run.notion,
        episodes=episodes,
        seed=seed,
        deterministic=deterministic,
        labels=run.labels,
        limits=(run.rows, run.thresholds),
    )


_PLAIN = ("environment", "criterion", "method", "names", "labels", "seeds", "settings", "observation_size", "seconds")

_LATER = ("reproducible", "notes")  # which older files do not have


def _under(arrays: dict[str, np.ndarray], folder: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(f"{folder}/"): array for name, array in arrays.items() if name.startswith(f"{folder}/")}
