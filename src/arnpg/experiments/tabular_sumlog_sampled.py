"""Figure 6(a): the sum-log objective from sampled trajectories, ARNPG-IMD with several micro steps."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from arnpg.criteria import ProportionalFair
from arnpg.examples.random_cmdp import random_cmdp
from arnpg.experiments.experiment import AbstractExperiment, Stages
from arnpg.experiments.statistics import above, band, paired
from arnpg.experiments.tabular import curve, objective_of, optimum, panel, sampled_values
from arnpg.intervals import interval
from arnpg.report.figure import Claim, Figure, Report, Table

__all__ = ["TabularSumLogSampled"]


@dataclasses.dataclass(frozen=True)
class TabularSumLogSampled(AbstractExperiment):
    """Settings of Appendix C.2.

    Attributes:
        total: micro steps in all, for every ``t_k`` alike.
        early: micro steps after which the claim about the first ones is read (the paper says fifty).
        seeds: runs a setting.
        tuning_seeds: other runs, on which ``eta`` at ``t_k = 1`` is chosen (ours).
        trajectories: for each state and action, an estimate (Section 5.2).
        model_seeds: the published instance and a second one (ours).
        micro_steps: ``t_k``.
        step_sizes: the paper's grid for ``t_k = 1``, thinned; it chooses 1.5.
        regularisation: ``alpha``.
        offset: ``delta``.
    """

    name: ClassVar[str] = "tabular-sumlog-sampled"
    place: ClassVar[str] = "Appendix C.2, Figure 6(a)"
    about: ClassVar[str] = "proportional fairness from sampled trajectories: ARNPG-IMD, t_k = 1, 2, 5, 10"

    total: int = 300
    early: int = 50
    seeds: int = 10
    tuning_seeds: int = 3
    trajectories: int = 20
    model_seeds: tuple[int, ...] = (10, 11)
    micro_steps: tuple[int, ...] = (1, 2, 5, 10)
    step_sizes: tuple[float, ...] = (0.1, 0.5, 1.5, 4.5)
    regularisation: float = 0.005
    offset: float = 1e-3

    def quick(self) -> TabularSumLogSampled:
        """Forty micro steps, three seeds."""
        return dataclasses.replace(
            self,
            total=40,
            early=10,
            seeds=3,
            tuning_seeds=3,
            model_seeds=(10,),
            micro_steps=(1, 5),
            step_sizes=(0.5, 1.5),
        )

    @property
    def criterion(self) -> ProportionalFair:
        """The sum of logarithms."""
        return ProportionalFair(offset=self.offset)

    def setting(self, count: int, eta: float) -> dict[str, Any]:
        """What ``t_k = count`` runs with."""
        shared = {"step_size": eta, "regularisation": self.regularisation, "trajectories": self.trajectories}
        return shared | {"micro_steps": count}

    def stages(self) -> tuple[str, ...]:
        """Tuning, then one batch for each instance and number of micro steps."""
        return ("tuning", *(f"t={count} model {seed}" for seed in self.model_seeds for count in self.micro_steps))

    def run(self, stages: Stages) -> Report:
        """Compute and report; ``found[seed][t]`` is ``F`` of ``(2, seeds, steps)``: the paper's ``eta``, the best."""
        best = self._tune(stages)
        found: dict[int, dict[int, np.ndarray]] = {}
        for seed in self.model_seeds:
            found[seed] = {}
            for count in self.micro_steps:
                grid = [self.setting(count, 1.5), self.setting(count, best)]
                compute = lambda g=grid, s=seed, t=count: {"values": self._values(s, g, t, range(self.seeds))}  # noqa: E731
                values = stages.stage(f"t={count} model {seed}", compute)["values"]
                found[seed][count] = objective_of(self.criterion, values)
        return self._report(found, best)

    def _values(self, seed: int, grid: list[dict[str, Any]], count: int, seeds: Any) -> np.ndarray:
        return sampled_values("arnpg-imd", self.criterion, random_cmdp(seed), grid, self.total // count, seeds)

    def _tune(self, stages: Stages) -> float:
        """The ``eta`` whose last fifth of iterates is best at ``t_k = 1``, on seeds that are not reported."""
        grid = [self.setting(1, eta) for eta in self.step_sizes]
        seeds = range(1000, 1000 + self.tuning_seeds)
        compute = lambda: {"values": self._values(self.model_seeds[0], grid, 1, seeds)}  # noqa: E731
        final = objective_of(self.criterion, stages.stage("tuning", compute)["values"])[:, :, -self.total // 5 :]
        return self.step_sizes[int(final.mean(axis=(1, 2)).argmax())]

    def _report(self, found: dict[int, dict[int, np.ndarray]], best: float) -> Report:
        figures, claims, rows = [], [], []
        for seed, runs in found.items():
            optimal = optimum(random_cmdp(seed), self.criterion).value
            for index, what in enumerate(("eta = 1.5", f"eta = {best:g}, the best")):
                title = f"{what}, instance {seed}"
                lines = {count: runs[count][index] for count in self.micro_steps}
                name = f"{self.name}-{seed}-{('paper', 'tuned')[index]}"
                heading = f"Sampled sum-log, {title}: {self.seeds} seeds, mean ± 1 sd"
                figures.append(Figure(name, heading, self.place, (self._panel(lines, optimal),)))
                claims.append(self._early(title, lines))
                rows += [self._row(title, count, line, optimal) for count, line in lines.items()]
        claims.append(self._same_end(found[self.model_seeds[0]]))
        summary = (
            f"{self.seeds} seeds; true objective of the sampled iterates against micro steps in all, with one "
            "standard deviation. The first claim compares the largest t_k with t_k = 1 over the first micro steps, "
            "paired by seed."
        )
        columns = ("settings", "t_k", "objective at the end", "below the optimum")
        return Report(
            self.name, summary, tuple(figures), tuple(claims), (Table("Last iterates", columns, tuple(rows)),)
        )

    def _panel(self, lines: dict[int, np.ndarray], optimal: float) -> Any:
        series = [
            curve(f"t_k = {count}", count * np.arange(1, line.shape[1] + 1), *band(line))
            for count, line in lines.items()
        ]
        return panel(
            "objective of the last iterate", "micro steps in all", "sum of log(0.001 + V_i)", series,
            level=optimal, level_label="optimum",
        )  # fmt: skip

    def _early(self, title: str, lines: dict[int, np.ndarray]) -> Claim:
        most = max(lines)
        ours = lines[most][:, : max(self.early // most, 1)].mean(axis=1)
        theirs = lines[1][:, most - 1 : self.early : most].mean(axis=1)
        text = f"over the first {self.early} micro steps t_k = {most} is above t_k = 1 ({title})"
        return Claim(text, self.place, paired(ours, theirs), above(ours, theirs))

    def _same_end(self, runs: dict[int, np.ndarray]) -> Claim:
        ends = {count: line[0, :, -max(self.total // 10 // count, 1) :].mean(axis=1) for count, line in runs.items()}
        spread = max(e.mean() for e in ends.values()) - min(e.mean() for e in ends.values())
        measured = ", ".join(f"{count}: {end.mean():.4f}" for count, end in ends.items()) + f"; spread {spread:.4f}"
        return Claim("all t_k end at the same value, within .01 (eta = 1.5)", self.place, measured, bool(spread < 0.01))

    def _row(self, title: str, count: int, line: np.ndarray, optimal: float) -> tuple[str, ...]:
        mean, low, high = interval(line[:, -max(self.total // 10 // count, 1) :].mean(axis=1))
        return title, str(count), f"{mean:.4f} [{low:.4f}, {high:.4f}]", f"{optimal - mean:.4f}"
