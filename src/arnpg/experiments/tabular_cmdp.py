"""Figure 1: average gap and violation on the random CMDP with exact gradients, ARNPG-EPD against NPG-PD and CRPO."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, ClassVar

import numpy as np

from arnpg.experiments.experiment import AbstractExperiment, Stages
from arnpg.experiments.statistics import paired, share
from arnpg.experiments.tabular import CMDP, averages, curve, exact_values, instances, optimum, panel, slope
from arnpg.report.figure import Claim, Figure, Report, Table

__all__ = ["TabularCMDP"]

LABELS = {"arnpg-epd": "ARNPG-EPD", "npg-pd": "NPG-PD", "crpo": "CRPO"}


@dataclasses.dataclass(frozen=True)
class TabularCMDP(AbstractExperiment):
    """Settings of Section 5.1 and Appendix A.1.

    Attributes:
        steps: macro steps (Appendix A.1).
        models: the published instance and others on which the constraint binds (ours).
        step_sizes: ``eta`` of EPD and NPG-PD; the paper's is 1.
        dual_steps: ``eta'``; the paper's is 1.
        crpo_step_sizes: the paper's grid .1 .. 1 and wider.
        tolerance: of CRPO (Appendix A.1).
    """

    name: ClassVar[str] = "tabular-cmdp"
    place: ClassVar[str] = "Section 5.1, Figure 1"
    about: ClassVar[str] = "average gap and violation with exact gradients: ARNPG-EPD, NPG-PD, CRPO"

    steps: int = 300
    models: int = 21
    step_sizes: tuple[float, ...] = (0.5, 1.0, 2.0, 5.0, 10.0)
    dual_steps: tuple[float, ...] = (0.1, 0.3, 1.0, 2.0, 5.0)
    crpo_step_sizes: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 2.0, 5.0, 10.0)
    tolerance: float = 0.01

    def quick(self) -> TabularCMDP:
        """Three models and three settings a method."""
        return dataclasses.replace(self, models=3, step_sizes=(1.0, 5.0), dual_steps=(1.0,), crpo_step_sizes=(0.4, 1.0))

    def grids(self) -> dict[str, list[dict[str, float]]]:
        """Every method's settings; the paper's come first."""
        pairs = [
            {"step_size": eta, "dual_step": dual} for eta, dual in itertools.product(self.step_sizes, self.dual_steps)
        ]
        pairs.sort(key=lambda s: s != {"step_size": 1.0, "dual_step": 1.0})
        rates = [{"step_size": eta, "tolerance": self.tolerance} for eta in self.crpo_step_sizes]
        rates.sort(key=lambda s: s["step_size"] != 0.4)
        return {"arnpg-epd": pairs, "npg-pd": pairs, "crpo": rates}

    def stages(self) -> tuple[str, ...]:
        """The optima, then one batch a method: its whole grid on all models."""
        return ("optima", *self.grids())

    def run(self, stages: Stages) -> Report:
        """Compute and report."""
        models = instances(self.models, CMDP)
        optima = stages.stage("optima", lambda: {"value": np.array([optimum(model, CMDP).value for model in models])})
        gaps, broken = {}, {}
        for method, grid in self.grids().items():
            values = stages.stage(method, lambda m=method, g=grid: self._compute(m, models, g))["values"]
            means = averages(np.moveaxis(values, -1, 0))
            gaps[method] = optima["value"][:, None] - means[0]
            broken[method] = 3.0 - means[1]
        return self._report(gaps, broken)

    def _compute(self, method: str, models: list[Any], grid: list[dict[str, float]]) -> dict[str, np.ndarray]:
        return {"values": exact_values(method, CMDP, models, grid, self.steps)}

    def _report(self, gaps: dict[str, np.ndarray], broken: dict[str, np.ndarray]) -> Report:
        """``gaps[method]`` and ``broken[method]`` are ``(settings, models, steps)``."""
        tuned = {method: int(np.maximum(np.abs(gaps[method]), broken[method])[:, 0, -1].argmin()) for method in gaps}
        first = dict.fromkeys(gaps, 0)
        figures = (
            self._figure("paper", "the paper's step sizes", gaps, broken, first),
            self._figure("tuned", "best step sizes of the grid", gaps, broken, tuned),
        )
        claims = [*self._claims("the paper's step sizes", gaps, broken, first)]
        claims += self._claims("best of the grid", gaps, broken, tuned)
        summary = (
            "Each method ran with the paper's step sizes and with a grid around them, on the published instance and on "
            f"{self.models - 1} more random ones; 'best' is the setting with the smallest larger of average gap and "
            "average violation on the published instance after the last step."
        )
        return Report(self.name, summary, figures, tuple(claims), (self._table(gaps, broken, tuned),))

    def _figure(
        self, name: str, title: str, gaps: dict[str, Any], broken: dict[str, Any], chosen: dict[str, int]
    ) -> Figure:
        steps = np.arange(1, self.steps + 1)
        lines = {method: (gaps[method][at, 0], broken[method][at, 0]) for method, at in chosen.items()}
        panels = []
        for index, label in enumerate(("average optimality gap", "average constraint violation")):
            series = [curve(LABELS[m], steps, pair[index]) for m, pair in lines.items()]
            panels.append(panel(label, "micro steps", f"{label} (discounted reward)", series, level=0.0))
        for index, label in enumerate(("average optimality gap", "average constraint violation")):
            series = [
                curve(LABELS[m], steps, np.abs(pair[index]), note=f"slope {slope(pair[index]):.2f}")
                for m, pair in lines.items()
            ]
            panels.append(panel(f"|{label}|, log-log", "micro steps", f"|{label}|", series, scale="log"))
        return Figure(f"{self.name}-{name}", f"Random CMDP, {title}", self.place, tuple(panels))

    def _claims(self, what: str, gaps: dict[str, Any], broken: dict[str, Any], chosen: dict[str, int]) -> list[Claim]:
        gap = {m: gaps[m][at, :, -1] for m, at in chosen.items()}
        violation = {m: np.abs(broken[m][at, :, -1]) for m, at in chosen.items()}
        at = chosen["arnpg-epd"]
        slopes = [slope(gaps["arnpg-epd"][at, 0]), slope(broken["arnpg-epd"][at, 0])]
        claims = []
        for label, figures in (("gap", gap), ("|violation|", violation)):
            ours, theirs = figures["arnpg-epd"], figures["npg-pd"]
            lead = f"{ours[0]:.4g} against {theirs[0]:.4g}; others: {share(ours[1:] < theirs[1:])} smaller, difference "
            text = f"EPD's average {label} is below NPG-PD's after {self.steps} steps ({what})"
            claims.append(Claim(text, self.place, lead + paired(ours[1:], theirs[1:]), bool(ours[0] < theirs[0])))
        inside = all(-1.02 <= s <= -0.88 for s in slopes)
        text = f"EPD's slopes of gap and violation lie between -0.9 and -1 ({what})"
        claims.append(Claim(text, "Section 5.1", f"{slopes[0]:.3f} and {slopes[1]:.3f}", inside))
        ours, theirs = gap["arnpg-epd"], gap["crpo"]
        lead = f"{ours[0]:.4g} against {theirs[0]:.4g}; others: {share(ours[1:] < theirs[1:])} smaller"
        claims.append(Claim(f"EPD's average gap is below CRPO's ({what})", "Figure 1", lead, bool(ours[0] < theirs[0])))
        return claims

    def _table(self, gaps: dict[str, Any], broken: dict[str, Any], tuned: dict[str, int]) -> Table:
        rows = []
        for method, grid in self.grids().items():
            for at, label in ((0, "the paper's"), (tuned[method], "best of grid")):
                settings = ", ".join(f"{name} {value:g}" for name, value in grid[at].items())
                gap, violation = gaps[method][at, 0, -1], broken[method][at, 0, -1]
                rows.append((LABELS[method], label, settings, f"{gap:.5f}", f"{violation:+.5f}"))
        return Table(
            "Published instance", ("method", "settings", "values", "average gap", "average violation"), tuple(rows)
        )
