"""Hopper under a limit on its speed: ARPPO-EPD against FOCOPS, NPG-PD and CRPO (Appendix A.3)."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from arnpg.criteria import Constrained, Discounted
from arnpg.envs.host_objectives import HostTransition
from arnpg.envs.hosts import make_host
from arnpg.experiments.acrobot import TAIL, Setup, final, line, panel, region, train
from arnpg.experiments.acrobot_cmdp import below, interval_text
from arnpg.experiments.experiment import AbstractExperiment, Stages
from arnpg.experiments.statistics import above, share
from arnpg.intervals import interval
from arnpg.neural import values
from arnpg.neural.networks import Network
from arnpg.neural.proximal import Passes, ProximalLoss
from arnpg.neural.rollout import Rollout
from arnpg.report.figure import Claim, Figure, Report, Table

__all__ = ["Hopper"]

NEAR = 1.02  # a cost within 2 % of the limit


def speed(transition: HostTransition) -> np.ndarray:
    """The cost: ``|x_velocity|``."""
    return np.abs(transition.info["x_velocity"])


@dataclasses.dataclass(frozen=True)
class Hopper(AbstractExperiment):
    """Settings of Appendix A.3 and of the authors' scripts.

    Attributes:
        environment: Hopper-v3 in the paper, which EnvPool has.
        iterations: micro steps, one batch each.
        seeds: runs a variant, paired: equal seeds start from equal policies.
        limit: of the cost of an episode, discounted.
        discount: of the limit, and of advantages.
        micro_steps: of ARPPO-EPD, a variant each.
        regularisation: alpha of ARPPO-EPD.
        arppo_dual_step: of ARPPO-EPD, for each micro step.
        dual_step: of FOCOPS and NPG-PD.
        cap: of FOCOPS's dual.
        tolerance: of CRPO, in units of the cost.
        temperature: of the proximal loss.
        proximal_kl: above it a sample's term is left out, and a batch's mean ends the epochs.
        learning_rate: of Adam, falling to 0.
        epochs: over a batch.
        minibatch: rows.
        gradient_clip: the longest gradient of the actor.
        max_kl: of a step within a trust region.
        damping: of the Fisher matrix.
        hidden: layers of the actor and of each critic.
        paths: a batch.
        path_steps: a path; an episode of 1,000 steps and a tail.
        time_limit: of an episode.
    """

    name: ClassVar[str] = "hopper"
    place: ClassVar[str] = "Appendix A.3"
    about: ClassVar[str] = "Hopper under a limit on its speed: ARPPO-EPD, FOCOPS, NPG-PD, CRPO"

    environment: str = "Hopper-v3"
    iterations: int = 500
    seeds: int = 5
    limit: float = 82.748
    discount: float = 0.99
    micro_steps: tuple[int, ...] = (1, 2, 5)
    regularisation: float = 0.05
    arppo_dual_step: float = 0.008
    dual_step: float = 0.01
    cap: float = 2.0
    tolerance: float = 0.5
    temperature: float = 1.5
    proximal_kl: float = 0.02
    learning_rate: float = 3e-4
    epochs: int = 10
    minibatch: int = 64
    gradient_clip: float = 40.0
    max_kl: float = 0.003
    damping: float = 1e-3
    hidden: tuple[int, ...] = (64, 64)
    paths: int = 2
    path_steps: int = 1024
    time_limit: int = 1000

    def quick(self) -> Hopper:
        """Six iterations of short episodes, two seeds."""
        small = {"iterations": 6, "seeds": 2, "micro_steps": (1, 2), "hidden": (8,), "epochs": 2}
        return dataclasses.replace(self, **small, path_steps=60, time_limit=50)

    def setups(self) -> dict[str, Setup]:
        """What each variant runs with."""
        env = make_host(self.environment, {"return": "reward", "speed": speed}, time_limit=self.time_limit)
        criterion = Constrained("return", at_most={"speed": Discounted(self.limit, self.discount)})
        shared = {
            "policy": Network(tuple(self.hidden), jnp.tanh, output_scale=0.1),
            "critic": Network(tuple(self.hidden), jnp.tanh),
            "rollout": Rollout(self.paths, self.path_steps),
            "values": (values.EpisodeTotal(), values.Discounted(self.discount)),
            "discount": self.discount,
        }
        return {
            name: Setup(method, env, criterion, self.iterations, {**shared, **own})
            for name, (method, own) in self._variants().items()
        }

    def _variants(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """The method of each variant, and what it has of its own."""
        trusted = region(self.max_kl, self.damping, 1.0)
        ours = {
            f"ARPPO-EPD, t_k = {count}": (
                "arppo-epd",
                {
                    "micro_steps": count,
                    "dual_step": self.arppo_dual_step * count,
                    "update": self._passes(self.regularisation),
                },
            )
            for count in self.micro_steps
        }
        return ours | {
            "FOCOPS": ("focops", {"dual_step": self.dual_step, "cap": self.cap, "update": self._passes(0.0)}),
            "NPG-PD": ("npg-pd", {"dual_step": self.dual_step, "update": trusted}),
            "CRPO": ("crpo", {"tolerance": self.tolerance, "max_kl": (self.max_kl,) * 2, "update": trusted}),
        }

    def stages(self) -> tuple[str, ...]:
        """All seeds of a variant each."""
        ours = (f"ARPPO-EPD, t_k = {count}" for count in self.micro_steps)
        return (*ours, "FOCOPS", "NPG-PD", "CRPO")

    def run(self, stages: Stages) -> Report:
        """Compute and report."""
        setups, seeds = self.setups(), range(self.seeds)
        runs = {name: stages.stage(name, lambda s=setup: train(s, seeds)) for name, setup in setups.items()}
        counts = {name: setup.settings.get("micro_steps", 1) for name, setup in setups.items()}
        ends = {name: final(run["values"], counts[name]) for name, run in runs.items()}
        lengths = {name: final(run["length"], counts[name]) for name, run in runs.items()}
        table = self._table(ends, lengths)
        figure = self._figure({name: run["values"] for name, run in runs.items()}, counts)
        return Report(self.name, self._summary(), (figure,), tuple(self._claims(ends)), (table,))

    def _passes(self, regularisation: float) -> Passes:
        return Passes(
            ProximalLoss(regularisation, self.temperature, self.proximal_kl),
            learning_rate=self.learning_rate,
            epochs=self.epochs,
            minibatch=self.minibatch,
            stop_kl=self.proximal_kl,
            gradient_clip=self.gradient_clip,
            updates=self.iterations,
        )

    def _figure(self, runs: dict[str, np.ndarray], counts: dict[str, int]) -> Figure:
        panels = []
        for index, (title, label) in enumerate((("reward", "total of an episode"), ("cost", "discounted speed"))):
            series = [line(name, found[:, :, index], counts[name], shaded=True) for name, found in runs.items()]
            panels.append(panel(title, label, series, self.limit if index else None))
        title = f"{self.environment} under a limit on its speed, {self.seeds} seeds, with one standard deviation"
        return Figure(f"{self.name}-shaded", title, self.place, tuple(panels))

    def _claims(self, ends: dict[str, np.ndarray]) -> list[Claim]:
        claims = []
        for name, ours in ends.items():
            if not name.startswith("ARPPO"):
                continue
            for other in ("FOCOPS", "NPG-PD", "CRPO"):
                mean, low, high = interval(ours[:, 0] - ends[other][:, 0])
                text = f"the final reward of {name} is above {other}'s"
                measured = f"{mean:+.0f} [{low:+.0f}, {high:+.0f}], n = {self.seeds}"
                claims.append(Claim(text, self.place, measured, above(ours[:, 0], ends[other][:, 0])))
            text = f"the final cost of {name} is within 2 % of the limit of {self.limit:g}, or below"
            claims.append(Claim(text, self.place, interval_text(ours[:, 1]), below(ours[:, 1], NEAR * self.limit)))
        return claims

    def _table(self, ends: dict[str, np.ndarray], lengths: dict[str, np.ndarray]) -> Table:
        rows = [
            (
                name,
                interval_text(found[:, 0]),
                interval_text(found[:, 1]),
                share(found[:, 1] <= NEAR * self.limit),
                f"{lengths[name].mean():.0f}",
            )
            for name, found in ends.items()
        ]
        names = ("method", "reward", "cost", "seeds within 2 % of the limit, or below", "steps of an episode")
        return Table("Final values", names, tuple(rows))

    def _summary(self) -> str:
        return (
            f"{self.seeds} seeds a variant, {self.iterations} iterations of {self.paths * self.path_steps:,} steps. "
            f"Final values are means of the last {TAIL} iterations, with bootstrap 95 % intervals over seeds; the "
            "reward is the total of an episode, the cost its discounted speed. Every batch begins with fresh episodes."
        )
