"""Appendix C, Acrobot: the sum of logarithms of two rewards, ARNPG-IMD with several micro steps a macro step."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from arnpg.criteria import ProportionalFair
from arnpg.envs.acrobot import TWO_REWARDS, Acrobot
from arnpg.experiments.acrobot import TAIL, Setup, blocks, final, line, panel, parts, pooled, region
from arnpg.experiments.acrobot_cmdp import interval_text
from arnpg.experiments.experiment import AbstractExperiment, Stages
from arnpg.experiments.statistics import above, paired
from arnpg.report.figure import Claim, Figure, Report, Table

__all__ = ["AcrobotSumLog"]

CLOSE = 0.05  # of the objective: what a figure cannot show


@dataclasses.dataclass(frozen=True)
class AcrobotSumLog(AbstractExperiment):
    """Settings of Appendix C, Acrobot.

    Attributes:
        iterations: micro steps, one batch each, for every ``t_k`` alike.
        early: iterations over which convergence is compared (ours).
        seeds: runs a setting, paired.
        micro_steps: ``t_k``.
        regularisation: alpha.
        offset: delta of the logarithm; the paper gives none, and batches with no reward at all are common at first.
        max_kl: of a step.
        damping: of the Fisher matrix.
        fisher_share: the random part of a batch that the Fisher matrix is taken over (ours; the scripts: all of it).
        hidden: layers of the actor and of each critic.
        paths: a batch.
        path_steps: a path.
    """

    name: ClassVar[str] = "acrobot-sumlog"
    place: ClassVar[str] = "Appendix C, Acrobot-v1"
    about: ClassVar[str] = "proportional fairness of two rewards on Acrobot: ARNPG-IMD, t_k = 1, 2, 5, 10"

    iterations: int = 300
    early: int = 100
    seeds: int = 10
    micro_steps: tuple[int, ...] = (1, 2, 5, 10)
    regularisation: float = 1.0
    offset: float = 1.0
    max_kl: float = 0.003
    damping: float = 1e-3
    fisher_share: float = 0.2
    hidden: tuple[int, ...] = (128, 128)
    paths: int = 10
    path_steps: int = 500

    def quick(self) -> AcrobotSumLog:
        """Ten iterations of small batches, three seeds."""
        return dataclasses.replace(
            self, iterations=10, early=5, seeds=3, micro_steps=(1, 5), hidden=(16,), paths=4, path_steps=100
        )

    def stages(self) -> tuple[str, ...]:
        """Ten seeds of a ``t_k`` each."""
        return tuple(stage for count in self.micro_steps for stage, _ in blocks(f"t={count}", range(self.seeds)))

    def run(self, stages: Stages) -> Report:
        """Compute and report."""
        criterion = ProportionalFair(offset=self.offset)
        runs = {}
        for count in self.micro_steps:
            settings = {
                "micro_steps": count,
                "regularisation": self.regularisation,
                "update": region(self.max_kl, self.damping, self.fisher_share),
                **parts(self.hidden, self.paths, self.path_steps),
            }
            setup = Setup("arnpg-imd", Acrobot(TWO_REWARDS), criterion, self.iterations, settings)
            values = pooled(stages, f"t={count}", setup, range(self.seeds))["values"].astype(float)
            objective = np.log(self.offset + values).sum(axis=-1, keepdims=True)
            runs[count] = np.concatenate([objective, values], axis=-1)
        summary = (
            f"{self.seeds} seeds a setting, paired. Final values are means of the last {TAIL} of {self.iterations} "
            f"iterations, with bootstrap 95 % intervals over seeds; early ones are means of the first {self.early}."
        )
        claims, table = tuple(self._claims(runs)), self._table(runs)
        return Report(self.name, summary, (self._figure(runs),), claims, (table,))

    def _figure(self, runs: dict[int, np.ndarray]) -> Figure:
        labels = {
            "objective": f"sum of log({self.offset:g} + V_i)",
            "reward I (tip above 0.5)": "total of a path of 500 steps",
            "reward II (tip between 0 and 0.1)": "total of a path of 500 steps",
        }
        panels = []
        for index, (title, label) in enumerate(labels.items()):
            series = [line(f"t_k = {count}", values[..., index], count) for count, values in runs.items()]
            panels.append(panel(title, label, series))
        title = f"Acrobot, sum of logarithms, ARNPG-IMD, means of {self.seeds} seeds"
        return Figure(self.name, title, self.place, tuple(panels))

    def _claims(self, runs: dict[int, np.ndarray]) -> list[Claim]:
        ends = {count: final(values, count)[:, 0] for count, values in runs.items()}
        means = {count: end.mean() for count, end in ends.items()}
        spread = max(means.values()) - min(means.values())
        measured = ", ".join(f"{count}: {mean:.3f}" for count, mean in means.items()) + f"; spread {spread:.3f}"
        text = f"the objectives of all t_k are indistinguishable at the end, within {CLOSE:.0%} of their mean"
        alike = bool(spread <= CLOSE * np.mean(list(means.values())))
        claims = [Claim(text, self.place, measured, alike)]
        early = {count: values[:, : max(self.early // count, 1), 0].mean(axis=1) for count, values in runs.items()}
        fast = 5 if 5 in early else max(early)
        for count in early:
            if count != fast:
                text = f"t_k = {fast} converges faster than t_k = {count}: objective, first {self.early} iterations"
                ours, theirs = early[fast], early[count]
                claims.append(Claim(text, self.place, paired(ours, theirs), above(ours, theirs)))
        return claims

    def _table(self, runs: dict[int, np.ndarray]) -> Table:
        rows = []
        for count, values in runs.items():
            end, early = final(values, count), values[:, : max(self.early // count, 1), 0].mean(axis=1)
            rows.append((str(count), *(interval_text(end[:, i]) for i in range(3)), interval_text(early)))
        names = ("t_k", "objective", "reward I", "reward II", f"objective, first {self.early} iterations")
        return Table("Final values", names, tuple(rows))
