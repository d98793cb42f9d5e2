"""Appendix A.2: Acrobot under limits, ARNPG-EPD with several micro steps a macro step."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from arnpg.criteria import Constrained
from arnpg.envs.acrobot import Acrobot
from arnpg.experiments.acrobot import TAIL, Setup, blocks, final, line, panel, parts, pooled, region
from arnpg.experiments.acrobot_cmdp import COSTS, REWARD, below, interval_text
from arnpg.experiments.experiment import AbstractExperiment, Stages
from arnpg.experiments.statistics import above, paired, share
from arnpg.report.figure import Claim, Figure, Report, Table

__all__ = ["AcrobotInnerLoops"]


@dataclasses.dataclass(frozen=True)
class AcrobotInnerLoops(AbstractExperiment):
    """Settings of Section 5.3 and Appendix A.2.

    Attributes:
        iterations: micro steps, one batch each, for every ``t_k`` alike.
        seeds: runs a setting, paired.
        limit: of both costs, a total of a path of 500 steps.
        micro_steps: ``t_k``.
        regularisation: alpha.
        dual_step: eta'.
        max_kl: of a step.
        damping: of the Fisher matrix.
        fisher_share: the random part of a batch that the Fisher matrix is taken over (ours; the scripts: all of it).
        hidden: layers of the actor and of each critic.
        paths: a batch.
        path_steps: a path.
    """

    name: ClassVar[str] = "acrobot-inner-loops"
    place: ClassVar[str] = "Appendix A.2"
    about: ClassVar[str] = "Acrobot under two costs: ARNPG-EPD, t_k = 1, 2, 5, 10"

    iterations: int = 300
    seeds: int = 10
    limit: float = 50.0
    micro_steps: tuple[int, ...] = (1, 2, 5, 10)
    regularisation: float = 1.0
    dual_step: float = 5e-4
    max_kl: float = 0.003
    damping: float = 1e-3
    fisher_share: float = 0.2
    hidden: tuple[int, ...] = (128, 128)
    paths: int = 10
    path_steps: int = 500

    def quick(self) -> AcrobotInnerLoops:
        """Ten iterations of small batches, three seeds."""
        return dataclasses.replace(
            self, iterations=10, seeds=3, micro_steps=(1, 5), hidden=(16,), paths=4, path_steps=100
        )

    def stages(self) -> tuple[str, ...]:
        """Ten seeds of a ``t_k`` each."""
        return tuple(stage for count in self.micro_steps for stage, _ in blocks(f"t={count}", range(self.seeds)))

    def run(self, stages: Stages) -> Report:
        """Compute and report."""
        criterion = Constrained(REWARD, at_most=dict.fromkeys(COSTS, self.limit))
        runs = {}
        for count in self.micro_steps:
            settings = {
                "micro_steps": count,
                "regularisation": self.regularisation,
                "dual_step": self.dual_step,
                "update": region(self.max_kl, self.damping, self.fisher_share),
                **parts(self.hidden, self.paths, self.path_steps),
            }
            setup = Setup("arnpg-epd", Acrobot(), criterion, self.iterations, settings)
            runs[count] = pooled(stages, f"t={count}", setup, range(self.seeds))["values"]
        summary = (
            f"{self.seeds} seeds a setting, paired. Final values are means of the last {TAIL} of {self.iterations} "
            "iterations, with bootstrap 95 % intervals over seeds. A run is feasible from the iteration on at which "
            f"the mean of both costs over {TAIL} iterations is first within the limits."
        )
        ends = {count: final(values, count) for count, values in runs.items()}
        entry = {count: self._first_feasible(values, count) for count, values in runs.items()}
        table = self._table(ends, entry)
        return Report(self.name, summary, (self._figure(runs),), tuple(self._claims(ends, entry)), (table,))

    def _first_feasible(self, values: np.ndarray, count: int) -> np.ndarray:
        """The iteration at which each seed's costs are within the limits first; the last one where they never are."""
        window = max(TAIL // count, 1)
        sums = np.cumsum(np.pad(values[..., 1:], ((0, 0), (1, 0), (0, 0))), axis=1)
        width = min(window, values.shape[1])
        means = (sums[:, width:] - sums[:, :-width]) / width
        kept = np.all(means <= self.limit, axis=-1)
        first = np.where(kept.any(axis=1), kept.argmax(axis=1), kept.shape[1] - 1)
        return (first + width) * count

    def _figure(self, runs: dict[int, np.ndarray]) -> Figure:
        panels = []
        for index, name in enumerate((REWARD, *COSTS)):
            series = [line(f"t_k = {count}", values[..., index], count) for count, values in runs.items()]
            title = "reward" if index == 0 else f"cost {'I' * index} ({name})"
            panels.append(panel(title, "total of a path of 500 steps", series, self.limit if index else None))
        title = f"Acrobot under two limits, ARNPG-EPD, means of {self.seeds} seeds"
        return Figure(self.name, title, self.place, tuple(panels))

    def _claims(self, ends: dict[int, np.ndarray], entry: dict[int, np.ndarray]) -> list[Claim]:
        claims = []
        for count, found in ends.items():
            worst = found[:, 1:].mean(axis=0).argmax() + 1
            cost = found[:, worst]
            text = f"t_k = {count} ends feasible, in the mean"
            claims.append(Claim(text, self.place, f"larger cost {interval_text(cost)}", below(cost, self.limit)))
        text = "even the lowest final mean reward reaches 181.8"
        lowest = min(ends, key=lambda count: ends[count][:, 0].mean())
        reward = ends[lowest][:, 0]
        claims.append(Claim(text, self.place, f"t_k = {lowest}: {interval_text(reward)}", below(-reward, -181.8)))
        least, most = min(entry), max(entry)
        text = f"t_k = {least} becomes feasible before t_k = {most}"
        claims.append(Claim(text, self.place, self._earlier(entry), above(entry[most], entry[least])))
        return claims

    def _earlier(self, entry: dict[int, np.ndarray]) -> str:
        return f"{paired(entry[max(entry)], entry[min(entry)])} iterations later"

    def _table(self, ends: dict[int, np.ndarray], entry: dict[int, np.ndarray]) -> Table:
        rows = []
        for count, found in ends.items():
            columns = (f"{interval_text(found[:, i])}, sd {found[:, i].std(ddof=1):.0f}" for i in range(3))
            kept = share(np.all(found[:, 1:] <= self.limit, axis=1))
            rows.append((str(count), *columns, kept, interval_text(entry[count])))
        names = ("t_k", "reward", "cost I", "cost II", "seeds with both costs kept", "feasible from iteration")
        return Table("Final values", names, tuple(rows))
