"""Figure 5: gap of the average value vector for max-min with exact gradients, ARNPG-OMDA against MO-NPG."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, ClassVar

import numpy as np

from arnpg.criteria import MaxMin
from arnpg.experiments.experiment import AbstractExperiment, Stages
from arnpg.experiments.statistics import paired, share
from arnpg.experiments.tabular import averages, curve, exact_values, instances, optimum, panel, slope
from arnpg.report.figure import Claim, Figure, Report, Table

__all__ = ["TabularMaxMin"]

BASELINE = "MO-NPG"


@dataclasses.dataclass(frozen=True)
class TabularMaxMin(AbstractExperiment):
    """Settings of Appendix C.1.

    Attributes:
        steps: macro steps.
        models: the published instance and others (ours).
        micro_steps: ``t_k`` (Figure 5).
        regularisation: ``alpha``; at ``t_k = 1`` it plays no part.
        step_sizes: ``eta`` of OMDA at ``t_k = 1``; the paper's grid is .06, .08, 1, and it chooses .08.
        dual_steps: ``eta'``; the paper chooses 2.
        npg_step_sizes: of MO-NPG; the paper's grid .80 ... 1.19, of which it chooses .93, and wider.
    """

    name: ClassVar[str] = "tabular-maxmin"
    place: ClassVar[str] = "Appendix C.1, Figure 5"
    about: ClassVar[str] = "max-min with exact gradients: ARNPG-OMDA, t_k = 1, 2, 5, 10, and MO-NPG"

    steps: int = 300
    models: int = 21
    micro_steps: tuple[int, ...] = (1, 2, 5, 10)
    regularisation: float = 1.0
    step_sizes: tuple[float, ...] = (0.06, 0.08, 0.3, 1.0, 2.0, 4.0)
    dual_steps: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0)
    npg_step_sizes: tuple[float, ...] = (0.1, 0.2, 0.4, *(round(0.8 + 0.01 * i, 2) for i in range(40)), 2.0, 4.0)

    def quick(self) -> TabularMaxMin:
        """Three models, two numbers of micro steps."""
        return dataclasses.replace(
            self,
            models=3,
            micro_steps=(1, 5),
            step_sizes=(0.08, 4.0),
            dual_steps=(2.0,),
            npg_step_sizes=(0.4, 0.93),
        )

    def grid(self, count: int) -> list[dict[str, Any]]:
        """OMDA's settings for ``t_k = count``; the paper's come first.

        For ``t_k > 1`` each ``eta`` has ``alpha`` of the paper where that converges, else ``(1 - gamma) / eta``.
        """
        pairs = itertools.product(self.step_sizes, self.dual_steps if count == 1 else (2.0,))
        ordered = sorted(pairs, key=lambda pair: pair != (0.08, 2.0))
        alpha = lambda eta: min(self.regularisation, 0.2 / eta)  # noqa: E731
        return [
            {"step_size": eta, "dual_step": dual, "regularisation": alpha(eta), "micro_steps": count}
            for eta, dual in ordered
        ]

    def baseline_grid(self) -> list[dict[str, float]]:
        """MO-NPG's settings; the paper's come first."""
        return [{"step_size": eta} for eta in sorted(self.npg_step_sizes, key=lambda eta: eta != 0.93)]

    def stages(self) -> tuple[str, ...]:
        """The optima, one batch for each number of micro steps, one for the baseline."""
        return ("optima", *(f"t={count}" for count in self.micro_steps), "mo-npg")

    def run(self, stages: Stages) -> Report:
        """Compute and report."""
        models = instances(self.models)
        optima = stages.stage("optima", lambda: {"value": np.array([optimum(m, MaxMin()).value for m in models])})
        batches = {f"t={count}": ("arnpg-omda", self.grid(count)) for count in self.micro_steps}
        batches["mo-npg"] = ("mo-npg", self.baseline_grid())
        gaps = {}
        for stage, (method, grid) in batches.items():
            compute = lambda m=method, g=grid: {  # noqa: E731
                "values": exact_values(m, MaxMin(), models, g, self.steps)
            }
            means = averages(np.moveaxis(stages.stage(stage, compute)["values"], -1, 0))
            gaps[stage] = optima["value"][:, None] - means.min(axis=0)
        return self._report(gaps)

    def _report(self, gaps: dict[str, np.ndarray]) -> Report:
        """``gaps[stage]`` is ``(settings, models, steps)``."""
        tuned = {stage: int(gaps[stage][:, 0, -1].argmin()) for stage in gaps}
        first = dict.fromkeys(gaps, 0)
        figures = (
            self._figure("paper", "the paper's step sizes", gaps, first),
            self._figure("tuned", "best of the grid", gaps, tuned),
        )
        claims = (
            *self._claims("the paper's step sizes", gaps, first),
            *self._claims("best of the grid", gaps, tuned),
        )
        summary = (
            "The gap of the average value vector, F* - F(mean V), against macro steps; OMDA runs two inner loops each. "
            "The wider grid reaches step sizes fifty times the paper's, which was tuned for other formulas."
        )
        return Report(self.name, summary, figures, claims, (self._table(gaps, tuned),))

    def _figure(self, name: str, title: str, gaps: dict[str, np.ndarray], chosen: dict[str, int]) -> Figure:
        steps = np.arange(1, self.steps + 1)
        lines = {_label(stage): gaps[stage][at, 0] for stage, at in chosen.items()}
        linear = [curve(label, steps, line) for label, line in lines.items()]
        logs = [curve(label, steps, np.abs(line), note=f"slope {slope(line):.2f}") for label, line in lines.items()]
        label = "gap of the average"
        panels = (
            panel(label, "macro steps", f"{label} (discounted reward)", linear, level=0.0),
            panel(f"{label}, log-log", "macro steps", label, logs, scale="log"),
        )
        return Figure(f"{self.name}-{name}", f"Max-min, {title}", self.place, panels)

    def _claims(self, what: str, gaps: dict[str, np.ndarray], chosen: dict[str, int]) -> tuple[Claim, ...]:
        final = {stage: gaps[stage][at, :, -1] for stage, at in chosen.items()}
        ours = [f"t={count}" for count in self.micro_steps]
        falls = np.all(np.diff(np.stack([final[stage] for stage in ours]), axis=0) < 0, axis=0)
        slopes = [slope(gaps[stage][chosen[stage], 0]) for stage in ours]
        best, base = final[ours[0]], final["mo-npg"]
        measured = ", ".join(f"{stage}: {final[stage][0]:.3g}" for stage in ours)
        lead = f"{best[0]:.4g} against {base[0]:.4g}; others: {share(best[1:] < base[1:])} smaller, difference "
        return (
            Claim(
                f"OMDA with t_k = 1 is below MO-NPG after {self.steps} macro steps ({what})",
                self.place,
                lead + paired(best[1:], base[1:]),
                bool(best[0] < base[0]),
            ),
            Claim(
                f"a larger t_k is lower ({what})", self.place, f"{measured}; others: {share(falls[1:])}", bool(falls[0])
            ),
            Claim(
                f"OMDA's log-log slopes are about -1 ({what})",
                self.place,
                ", ".join(f"{s:.3f}" for s in slopes),
                all(-1.15 <= s <= -0.85 for s in slopes),
            ),
        )

    def _table(self, gaps: dict[str, np.ndarray], tuned: dict[str, int]) -> Table:
        rows = []
        for stage in gaps:
            grid = self.baseline_grid() if stage == "mo-npg" else self.grid(int(stage[2:]))
            for at, label in ((0, "the paper's"), (tuned[stage], "best of grid")):
                settings = ", ".join(f"{k} {v:g}" for k, v in grid[at].items() if k != "micro_steps")
                rows.append((_label(stage), label, settings, f"{gaps[stage][at, 0, -1]:.3e}"))
        return Table("Published instance", ("method", "settings", "values", "gap of the average"), tuple(rows))


def _label(stage: str) -> str:
    return BASELINE if stage == "mo-npg" else f"OMDA, t_k = {stage[2:]}"
