"""Figure 4: average gap of the sum-log objective with exact gradients, ARNPG-IMD with several micro steps."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from arnpg.criteria import ProportionalFair
from arnpg.experiments.experiment import AbstractExperiment, Stages
from arnpg.experiments.statistics import share
from arnpg.experiments.tabular import averages, curve, exact_values, instances, objective_of, optimum, panel, slope
from arnpg.report.figure import Claim, Figure, Report, Table

__all__ = ["TabularSumLog"]


@dataclasses.dataclass(frozen=True)
class TabularSumLog(AbstractExperiment):
    """Settings of Appendix C.1.

    Attributes:
        steps: macro steps.
        models: the published instance and others (ours).
        micro_steps: ``t_k`` (Figure 4).
        regularisation: ``alpha``.
        offset: ``delta`` of the sum-log function (the authors' scripts).
        step_sizes: ``eta`` at ``t_k = 1``; the paper's grid, of which it chooses 4.5.
        other_step_sizes: ``eta`` for ``t_k > 1``; the paper uses 4.5 only.
    """

    name: ClassVar[str] = "tabular-sumlog"
    place: ClassVar[str] = "Appendix C.1, Figure 4"
    about: ClassVar[str] = "average gap of proportional fairness with exact gradients: ARNPG-IMD, t_k = 1, 2, 5, 10"

    steps: int = 300
    models: int = 21
    micro_steps: tuple[int, ...] = (1, 2, 5, 10)
    regularisation: float = 0.01
    offset: float = 1e-3
    step_sizes: tuple[float, ...] = tuple(0.5 * i for i in range(1, 21))
    other_step_sizes: tuple[float, ...] = (1.0, 2.0, 4.5, 9.0, 18.0)

    def quick(self) -> TabularSumLog:
        """Three models, two numbers of micro steps."""
        return dataclasses.replace(
            self, models=3, micro_steps=(1, 5), step_sizes=(4.5, 9.0), other_step_sizes=(4.5, 9.0)
        )

    def grid(self, count: int) -> list[dict[str, Any]]:
        """Settings for ``t_k = count``; the paper's ``eta = 4.5`` comes first."""
        sizes = self.step_sizes if count == 1 else self.other_step_sizes
        ordered = sorted(sizes, key=lambda size: size != 4.5)
        return [{"step_size": s, "regularisation": self.regularisation, "micro_steps": count} for s in ordered]

    def stages(self) -> tuple[str, ...]:
        """The optima, then one batch for each number of micro steps."""
        return ("optima", *(f"t={count}" for count in self.micro_steps))

    def run(self, stages: Stages) -> Report:
        """Compute and report."""
        words = ProportionalFair(offset=self.offset)
        models = instances(self.models)
        optima = stages.stage("optima", lambda: {"value": np.array([optimum(model, words).value for model in models])})
        gaps = {}
        for count in self.micro_steps:
            compute = lambda t=count: {  # noqa: E731
                "values": exact_values("arnpg-imd", words, models, self.grid(t), self.steps)
            }
            values = stages.stage(f"t={count}", compute)["values"]
            gaps[count] = averages(optima["value"][:, None] - objective_of(words, values))
        return self._report(gaps)

    def _report(self, gaps: dict[int, np.ndarray]) -> Report:
        """``gaps[t]`` is ``(settings, models, steps)``."""
        tuned = {count: int(gaps[count][:, 0, -1].argmin()) for count in gaps}
        first = dict.fromkeys(gaps, 0)
        figures = (
            self._figure("paper", "eta = 4.5", gaps, first),
            self._figure("tuned", "best eta of the grid for each t_k", gaps, tuned),
        )
        claims = (*self._claims("eta = 4.5", gaps, first), *self._claims("best eta", gaps, tuned))
        summary = (
            "ARNPG-IMD on the sum of logarithms, against macro steps. At t_k = 1 alpha plays no part. Its grid of eta "
            f"at t_k = 1 is the paper's; {self.models - 1} more instances show how far a claim carries."
        )
        return Report(self.name, summary, figures, claims, (self._table(gaps, tuned),))

    def _figure(self, name: str, title: str, gaps: dict[int, np.ndarray], chosen: dict[int, int]) -> Figure:
        steps = np.arange(1, self.steps + 1)
        lines = {count: gaps[count][at, 0] for count, at in chosen.items()}
        linear = [curve(f"t_k = {count}", steps, line) for count, line in lines.items()]
        logs = [curve(f"t_k = {count}", steps, line, note=f"slope {slope(line):.2f}") for count, line in lines.items()]
        label = "average optimality gap"
        panels = (
            panel(label, "macro steps", f"{label} (log reward)", linear, level=0.0),
            panel(f"{label}, log-log", "macro steps", label, logs, scale="log"),
        )
        return Figure(f"{self.name}-{name}", f"Sum-log objective, {title}", self.place, panels)

    def _claims(self, what: str, gaps: dict[int, np.ndarray], chosen: dict[int, int]) -> tuple[Claim, ...]:
        final = {count: gaps[count][at, :, -1] for count, at in chosen.items()}
        order = np.stack([final[count] for count in self.micro_steps])
        falls = np.all(np.diff(order, axis=0) < 0, axis=0)
        slopes = [slope(gaps[count][at, 0]) for count, at in chosen.items()]
        measured = ", ".join(f"{count}: {final[count][0]:.3g}" for count in self.micro_steps)
        return (
            Claim(
                f"a larger t_k has a smaller average gap after {self.steps} macro steps ({what})",
                self.place,
                f"{measured}; others: {share(falls[1:])}",
                bool(falls[0]),
            ),
            Claim(
                f"log-log slopes are about -1 ({what})",
                self.place,
                ", ".join(f"{s:.3f}" for s in slopes),
                all(-1.1 <= s <= -0.9 for s in slopes),
            ),
        )

    def _table(self, gaps: dict[int, np.ndarray], tuned: dict[int, int]) -> Table:
        rows = []
        for count in self.micro_steps:
            for at, label in ((0, "the paper's"), (tuned[count], "best of grid")):
                eta = self.grid(count)[at]["step_size"]
                rows.append((str(count), label, f"{eta:g}", f"{gaps[count][at, 0, -1]:.3e}"))
        return Table("Published instance", ("t_k", "settings", "eta", "average gap"), tuple(rows))
