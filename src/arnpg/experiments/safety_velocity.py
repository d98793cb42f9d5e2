"""Safety-Gymnasium's velocity tasks, rebuilt on Gymnasium's robots.

A step costs 1 where the robot is faster than half of what an unconstrained agent reaches, and an episode of 1,000 steps
may cost 25. Falling early keeps such a total low; what is trained on is therefore the excess over a pace,
``sum_t (c_t - 25 / 1000) <= 0``: the same for an episode of full length, and for a shorter one a smaller allowance.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from arnpg.criteria import Constrained
from arnpg.envs.find import Environment
from arnpg.envs.host_objectives import HostTransition
from arnpg.envs.hosts import make_host
from arnpg.errors import SettingsError
from arnpg.evaluation import Notion, play
from arnpg.experiments.acrobot import TAIL, final, line, panel, policies_of, region, run_seeds
from arnpg.experiments.acrobot_cmdp import interval_text
from arnpg.experiments.experiment import AbstractExperiment, Arrays, Stages
from arnpg.experiments.statistics import above, paired, share
from arnpg.neural.combine import Together
from arnpg.neural.proximal import Passes, ProximalLoss
from arnpg.neural.rollout import Rollout
from arnpg.neural.values import EpisodeTotal
from arnpg.recipes.neural import METHODS
from arnpg.report.figure import Claim, Figure, Panel, Report, Table

__all__ = ["SafetyVelocity"]

# Of Safety-Gymnasium; for the planar robots x_velocity, for Ant the horizontal speed.
FASTEST = {
    "Hopper-v4": 0.7402,
    "Walker2d-v4": 2.3415,
    "HalfCheetah-v4": 3.2096,
    "Swimmer-v4": 0.2282,
    "Ant-v4": 2.6222,
}
STEADY, PLAIN, FOCOPS, NPG = "arppo-epd-steady", "arppo-epd", "focops", "npg-pd"
TITLES = {STEADY: "ARPPO-EPD steady", PLAIN: "ARPPO-EPD", FOCOPS: "FOCOPS", NPG: "NPG-PD"}
RECIPES = {STEADY: "arnpg-epd-steady"}  # on passes of Adam, in the place of a trust region
WANTED = {"Hopper-v4": 1714.0}  # CPO's 1714 +- 18 in the published table, at 10 million steps
EVALUATION_SEED = 10_000


def too_fast(environment: str) -> Callable[[HostTransition], np.ndarray]:
    """The cost of a step, 0 or 1."""
    limit, planar = FASTEST[environment], environment != "Ant-v4"

    def cost(transition: HostTransition) -> np.ndarray:
        along = transition.info["x_velocity"]
        speed = along if planar else np.hypot(along, transition.info["y_velocity"])
        return (speed > limit).astype(float)

    return cost


@dataclasses.dataclass(frozen=True)
class SafetyVelocity(AbstractExperiment):
    """An addition to the paper, beside the published table of Safety-Gymnasium's tasks.

    Attributes:
        environments: which robots.
        methods: of ``arppo-epd-steady``, ``arppo-epd``, ``focops`` and ``npg-pd``.
        iterations: one batch each.
        seeds: runs a method, paired: equal seeds start from equal policies.
        limit: of the cost of an episode.
        horizon: steps of an episode.
        dual_step: of every method, for a unit of cost.
        steady_damping: gain of the violation itself.
        steady_margin: tightening, relative to the limit.
        steady_clip: the most that the integral sees, relative to the limit.
        cap: of FOCOPS's dual.
        regularisation: alpha of both ARPPO-EPDs.
        learning_rate: of Adam, falling to 0.
        max_kl: of a step within a trust region.
        damping: of the Fisher matrix.
        paths: a batch, each of one episode's length and a tail.
        path_steps: a path.
        episodes: of an evaluation.
    """

    name: ClassVar[str] = "safety-velocity"
    place: ClassVar[str] = "not in the paper"
    about: ClassVar[str] = "Hopper under a limit on how often it is too fast: ARPPO-EPD, FOCOPS, NPG-PD"

    environments: tuple[str, ...] = ("Hopper-v4",)
    methods: tuple[str, ...] = (STEADY, FOCOPS, NPG)
    iterations: int = 1464
    seeds: int = 5
    limit: float = 25.0
    horizon: int = 1000
    dual_step: float = 1e-3
    steady_damping: float = 3e-3
    steady_margin: float = 0.2
    steady_clip: float = 4.0
    cap: float = 2.0
    regularisation: float = 0.05
    learning_rate: float = 3e-4
    max_kl: float = 0.003
    damping: float = 1e-3
    paths: int = 2
    path_steps: int = 1024
    episodes: int = 20

    def __post_init__(self) -> None:
        """Known robots and methods."""
        super().__post_init__()
        for name, given, known in (("environments", self.environments, FASTEST), ("methods", self.methods, TITLES)):
            for entry in given:
                if entry not in known:
                    raise SettingsError(f"{name} has {entry!r}, which is none of {', '.join(known)}.")

    def quick(self) -> SafetyVelocity:
        """Six iterations of short episodes, two seeds."""
        small: dict[str, Any] = {"iterations": 6, "seeds": 2, "horizon": 50, "limit": 1.25, "path_steps": 60}
        return dataclasses.replace(self, **small, episodes=2)

    def stages(self) -> tuple[str, ...]:
        """All seeds of a method in an environment each."""
        return tuple(f"{environment} {method}" for environment in self.environments for method in self.methods)

    def run(self, stages: Stages) -> Report:
        """Compute and report."""
        found = {
            (environment, method): stages.stage(
                f"{environment} {method}", lambda e=environment, m=method: self._trained(e, m)
            )
            for environment in self.environments
            for method in self.methods
        }
        figures = tuple(self._figure(environment, found) for environment in self.environments)
        tables = tuple(self._table(environment, found) for environment in self.environments)
        claims = [claim for environment in self.environments for claim in self._claims(environment, found)]
        return Report(self.name, self._summary(), figures, tuple(claims), tables)

    @property
    def pace(self) -> float:
        """What a step may cost."""
        return self.limit / self.horizon

    def _trained(self, environment: str, method: str) -> Arrays:
        """Train all seeds of a method, then play their last iterates, with and without noise."""
        cost = too_fast(environment)
        objectives = {"return": "reward", "excess": lambda transition: cost(transition) - self.pace}
        env = make_host(environment, objectives, time_limit=self.horizon)
        criterion = Constrained("return", at_most={"excess": 0.0}).bind(env.names)
        algorithm = METHODS[RECIPES.get(method, method)](env, criterion, **self._settings(method))
        found = run_seeds(algorithm, self.iterations, range(self.seeds))
        lengths = np.asarray(found.trace.inner.episode_length)
        costs = found.trace.values[..., 1] + self.pace * lengths
        values = np.stack([found.trace.values[..., 0], costs], axis=-1)
        played = make_host(environment, {"return": "reward", "cost": cost}, time_limit=self.horizon)
        trace = {"values": values, "length": lengths, "dual": found.trace.dual}
        return trace | self._played(played, policies_of(found))

    def _settings(self, method: str) -> dict[str, Any]:
        """Of the recipe; all methods weigh advantages in the rewards' own units."""
        shared = {
            "combine": Together(),
            "rollout": Rollout(self.paths, self.path_steps),
            "dual_step": self.dual_step,
            "update": Passes(
                ProximalLoss(0.0 if method == FOCOPS else self.regularisation),
                learning_rate=self.learning_rate,
                updates=self.iterations,
            ),
        }
        own: dict[str, dict[str, Any]] = {
            STEADY: {
                "micro_steps": 1,
                "damping": self.steady_damping,
                "margin": self.steady_margin,
                "clip": self.steady_clip,
                "scale": self.limit,
            },
            PLAIN: {},
            FOCOPS: {"cap": self.cap},
            NPG: {"update": region(self.max_kl, self.damping, 1.0)},
        }
        return {**shared, **own[method]}

    def _played(self, env: Environment, policies: Sequence[Any]) -> dict[str, np.ndarray]:
        """Totals ``(seeds, episodes, 2)`` and lengths, of the most probable actions and of sampled ones."""
        notion, found = Notion((EpisodeTotal(),) * 2, self.horizon, 0.99), {}
        for how, greedy in (("greedy", True), ("sampled", False)):
            rows = [play(env, policy, notion, self.episodes, EVALUATION_SEED, greedy) for policy in policies]
            found[how] = np.stack([totals for totals, _ in rows])
            found[f"{how}_length"] = np.stack([lengths for _, lengths in rows])
        return found

    def _figure(self, environment: str, found: dict[tuple[str, str], Arrays]) -> Figure:
        panels: list[Panel] = []
        for index, (title, label) in enumerate((("reward", "total of an episode"), ("cost", "steps too fast"))):
            series = [line(TITLES[m], found[environment, m]["values"][..., index], shaded=True) for m in self.methods]
            panels.append(panel(title, label, series, self.limit if index else None))
        title = f"{environment} under a limit on steps that are too fast, {self.seeds} seeds, with one deviation"
        return Figure(f"{self.name}-{environment.lower()}", title, self.place, tuple(panels))

    def _table(self, environment: str, found: dict[tuple[str, str], Arrays]) -> Table:
        rows = []
        for method in self.methods:
            arrays = found[environment, method]
            ends = final(arrays["values"])
            rows.append(_row(TITLES[method], "training", ends, final(arrays["length"]), self.limit))
            for how in ("greedy", "sampled"):
                means, lengths = arrays[how].mean(axis=1), arrays[f"{how}_length"].mean(axis=1)
                rows.append(_row(TITLES[method], how, means, lengths, self.limit))
        head = ("method", "actions", "reward", "cost", "seeds within the limit", "steps of an episode")
        return Table(environment, head, tuple(rows))

    def _claims(self, environment: str, found: dict[tuple[str, str], Arrays]) -> list[Claim]:
        claims, ours = [], found[environment, self.methods[0]]["greedy"].mean(axis=1)
        first = TITLES[self.methods[0]]
        if environment in WANTED:
            good = (ours[:, 0] >= WANTED[environment]) & (ours[:, 1] <= self.limit)
            text = f"{first} reaches {WANTED[environment]:,.0f} within the limit on every seed, without noise"
            measured = f"{share(good)}; lowest reward {ours[:, 0].min():.0f}, largest cost {ours[:, 1].max():.1f}"
            claims.append(Claim(f"{environment}: {text}", self.place, measured, bool(good.all())))
        for other in self.methods[1:]:
            theirs = found[environment, other]["greedy"].mean(axis=1)
            text = f"{environment}: {first}'s reward is above {TITLES[other]}'s, without noise"
            measured = f"{paired(ours[:, 0], theirs[:, 0])}; the other's cost {interval_text(theirs[:, 1])}"
            claims.append(Claim(text, self.place, measured, above(ours[:, 0], theirs[:, 0])))
        return claims

    def _summary(self) -> str:
        steps = self.iterations * self.paths * self.path_steps
        return (
            f"{self.seeds} seeds a method, {steps:,} steps each. A step costs 1 where the robot is too fast; an "
            f"episode of {self.horizon} steps may cost {self.limit:g}. Rows say training (sampled actions, the mean of "
            f"the last {TAIL} batches), greedy and sampled: {self.episodes} fresh episodes of the last iterate with "
            "its most probable actions and with its noise. No checkpoint is chosen."
        )


def _row(title: str, how: str, ends: np.ndarray, lengths: np.ndarray, limit: float) -> tuple[str, ...]:
    """Mean over seeds, with the share of seeds whose mean cost keeps the limit."""
    cells = (interval_text(ends[:, 0]), interval_text(ends[:, 1]), share(ends[:, 1] <= limit))
    return (title, how, *cells, f"{lengths.mean():.0f}")
