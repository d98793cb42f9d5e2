"""Fairness and max-min on three of MO-Gymnasium's environments, two of which have a certified optimum."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from arnpg.api import solve
from arnpg.criteria import MaxMin, ProportionalFair
from arnpg.envs.hosts import make_host
from arnpg.experiments.acrobot_cmdp import below
from arnpg.experiments.experiment import AbstractExperiment, Arrays, Stages
from arnpg.experiments.mo_models import TIME, fishwood, fruit_tree
from arnpg.experiments.mo_problems import Problem, loss, objective, smooth_minimum, train
from arnpg.experiments.statistics import above, band, paired
from arnpg.intervals import interval
from arnpg.neural.networks import Network
from arnpg.neural.proximal import Passes, ProximalLoss
from arnpg.neural.rollout import Rollout
from arnpg.report.figure import Claim, Figure, Panel, Report, Series, Table

__all__ = ["MOGymnasium"]

KINDS = ("fairness", "max-min")
DEPTH = 6  # of the fruit tree, an episode's steps
CLOSE = 0.05  # a share of the certified optimum


@dataclasses.dataclass(frozen=True)
class MOGymnasium(AbstractExperiment):
    """Settings of ours.

    Attributes:
        seeds: runs an environment and criterion, paired.
        fishwood_steps: environment steps of a run.
        fruit_tree_steps: likewise.
        hopper_steps: likewise.
        time_limit: of mo-hopper-v5, whose own is 1,000: whole episodes are half as long, and updates twice as many.
        paths: of a batch, each as long as an episode: fishwood, fruit tree, hopper.
        smoothings: of the smooth minimum, likewise, in units of a total.
        offset: of mo-hopper's logarithms: an untrained policy's control total is 2, give or take 3.
        regularisation: alpha.
        learning_rates: of Adam, likewise; they fall to 0.
        hidden: layers of the actor and of each critic.
        episodes: that each last policy is judged by on mo-hopper-v5.
    """

    name: ClassVar[str] = "mo-gymnasium"
    place: ClassVar[str] = "not in the paper"
    about: ClassVar[str] = "fairness and max-min on MO-Gymnasium: fishwood, fruit tree, hopper"

    seeds: int = 5
    fishwood_steps: int = 80_000
    fruit_tree_steps: int = 120_000
    hopper_steps: int = 200_000
    time_limit: int = 500
    paths: tuple[int, ...] = (4, 256, 4)
    smoothings: tuple[float, ...] = (1.0, 0.1, 20.0)
    learning_rates: tuple[float, ...] = (1e-3, 1e-3, 3e-4)
    offset: float = 10.0
    regularisation: float = 0.05
    hidden: tuple[int, ...] = (64, 64)
    episodes: int = 40

    def quick(self) -> MOGymnasium:
        """Two macro steps of small batches, two seeds."""
        few = {"fishwood_steps": 800, "fruit_tree_steps": 192, "hopper_steps": 320, "time_limit": 40}
        return dataclasses.replace(self, **few, seeds=2, paths=(2, 16, 4), hidden=(8,), episodes=2)

    def problems(self) -> dict[str, Problem]:
        """By the id of the environment."""
        fair, shifted = ProportionalFair(), ProportionalFair(offset=self.offset)
        rows = (
            ("fishwood-v0", TIME, self.fishwood_steps, fair, fishwood()),
            ("fruit-tree-v0", DEPTH, self.fruit_tree_steps, fair, fruit_tree()),
            ("mo-hopper-v5", self.time_limit, self.hopper_steps, shifted, None),
        )
        found, own = {}, zip(self.paths, self.learning_rates, self.smoothings, strict=True)
        for (name, limit, steps, fairness, known), (paths, rate, smoothing) in zip(rows, own, strict=True):
            found[name] = Problem(
                make_host(name, time_limit=limit),
                {"fairness": fairness, "max-min": MaxMin()},
                {"fairness": fairness, "max-min": smooth_minimum(smoothing)},
                Rollout(paths, limit),
                steps,
                Passes(ProximalLoss(self.regularisation), learning_rate=rate),
                self._networks(),
                known,
            )
        return found

    def stages(self) -> tuple[str, ...]:
        """All seeds of an environment and criterion each."""
        return tuple(f"{name} {kind}" for name in ("fishwood-v0", "fruit-tree-v0", "mo-hopper-v5") for kind in KINDS)

    def run(self, stages: Stages) -> Report:
        """Compute and report."""
        problems, seeds = self.problems(), range(self.seeds)
        found: dict[tuple[str, str], Arrays] = {}
        for name, problem in problems.items():
            for kind in KINDS:
                work = lambda p=problem, k=kind: train(p, k, seeds, self.episodes)  # noqa: E731
                found[name, kind] = stages.stage(f"{name} {kind}", work)
        optima = {(name, kind): _optimum(problems[name], kind) for name, kind in found}
        figures = tuple(_figure(problems, found, optima, kind) for kind in KINDS)
        claims = [*_near(problems, found, optima), *_each_its_own(problems["mo-hopper-v5"], found, "mo-hopper-v5")]
        return Report(self.name, self._summary(), figures, tuple(claims), (_table(problems, found, optima),))

    def _networks(self) -> dict[str, Any]:
        hidden = tuple(self.hidden)
        return {"policy": Network(hidden, jnp.tanh, output_scale=0.1), "critic": Network(hidden, jnp.tanh)}

    def _summary(self) -> str:
        return (
            f"{self.seeds} seeds of ARPPO-IMD, on the sum of logarithms and on a smooth minimum of the totals of an "
            "episode. What counts is the criterion of the mean totals of the last policy: exact on fishwood-v0 "
            f"and fruit-tree-v0, whose optimum is certified from the enumerated model, else over {self.episodes} fresh "
            "episodes. Bootstrap 95 % intervals over seeds."
        )


def _optimum(problem: Problem, kind: str) -> float:
    """The certified optimum; none is known without a model."""
    return float("nan") if problem.known is None else solve(problem.known.mdp, problem.criteria[kind]).objective


def _figure(problems: dict[str, Problem], found: Any, optima: Any, kind: str) -> Figure:
    panels = []
    for name, problem in problems.items():
        rows = band(objective(problem, kind, found[name, kind]["values"]))
        mean, low, high = (tuple(np.asarray(row, float).tolist()) for row in rows)
        steps = tuple(problem.rollout.size * count / 1000 for count in range(1, len(mean) + 1))
        line = Series("ARPPO-IMD", steps, mean, low, high)
        level = None if problem.known is None else optima[name, kind]
        label = "certified optimum" if problem.known is not None else ""
        panels.append(Panel(name, "thousand environment steps", kind, (line,), level=level, level_label=label))
    return Figure(f"mo-gymnasium-{kind}", f"{kind}, with one standard deviation", "not in the paper", tuple(panels))


def _near(problems: dict[str, Problem], found: Any, optima: Any) -> list[Claim]:
    claims = []
    for (name, kind), arrays in found.items():
        if problems[name].known is None:
            continue
        missed = loss(problems[name], kind, objective(problems[name], kind, arrays["final"]), optima[name, kind])
        mean, low, high = interval(missed)
        text = f"{kind} on {name} is within {CLOSE:.0%} of the certified optimum"
        measured = f"{mean:.1%} [{low:.1%}, {high:.1%}] missed"
        claims.append(Claim(text, "not in the paper", measured, below(missed, CLOSE)))
    return claims


def _each_its_own(problem: Problem, found: Any, name: str) -> list[Claim]:
    """Two criteria that led to the same policies would show nothing."""
    claims = []
    for kind, other in (KINDS, KINDS[::-1]):
        ours, theirs = (objective(problem, kind, found[name, which]["final"]) for which in (kind, other))
        text = f"on {name} policies trained for {kind} are better by it than those trained for {other}"
        claims.append(Claim(text, "not in the paper", paired(ours, theirs), above(ours, theirs)))
    return claims


def _table(problems: dict[str, Problem], found: Any, optima: Any) -> Table:
    rows = []
    for (name, kind), arrays in found.items():
        problem, best = problems[name], optima[name, kind]
        reached = objective(problem, kind, arrays["final"])
        missed = f"{loss(problem, kind, reached, best).mean():.1%}" if problem.known is not None else ""
        means = zip(problem.env.names, arrays["final"].mean(axis=0), strict=True)
        totals = ", ".join(f"{label} {value:.4g}" for label, value in means)
        known = f"{best:.4g}" if problem.known is not None else ""
        rows.append((name, kind, str(interval(reached)), known, missed, totals))
    columns = ("environment", "criterion", "reached", "certified optimum", "missed", "mean totals")
    return Table("Last policies", columns, tuple(rows))
