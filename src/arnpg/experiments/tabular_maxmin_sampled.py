"""Figure 6(b): max-min from sampled trajectories, ARNPG-OMDA with several micro steps against MO-NPG."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from arnpg.criteria import MaxMin
from arnpg.examples.random_cmdp import random_cmdp
from arnpg.experiments.experiment import AbstractExperiment, Stages
from arnpg.experiments.statistics import above, band, paired
from arnpg.experiments.tabular import curve, optimum, panel, sampled_values
from arnpg.intervals import interval
from arnpg.report.figure import Claim, Figure, Panel, Report, Table

__all__ = ["TabularMaxMinSampled"]

BASELINE = "MO-NPG"


@dataclasses.dataclass(frozen=True)
class TabularMaxMinSampled(AbstractExperiment):
    """Settings of Appendix C.2.

    Attributes:
        total: micro steps in all, for every variant alike; OMDA's two inner loops both count.
        seeds: runs a setting.
        tuning_seeds: other runs, on which settings are chosen (ours).
        trajectories: for each state and action, an estimate.
        model_seeds: the published instance and a second one (ours).
        micro_steps: ``t_k``.
        npg_step_sizes: of MO-NPG; the paper's grid .1 ... 1, thinned; it chooses .5.
        omda: ``(eta, alpha, eta')`` of OMDA; the paper's first, then others (ours).
    """

    name: ClassVar[str] = "tabular-maxmin-sampled"
    place: ClassVar[str] = "Appendix C.2, Figure 6(b)"
    about: ClassVar[str] = "max-min from sampled trajectories: ARNPG-OMDA, t_k = 1, 2, 5, 10, and MO-NPG"

    total: int = 300
    seeds: int = 10
    tuning_seeds: int = 3
    trajectories: int = 20
    model_seeds: tuple[int, ...] = (10, 11)
    micro_steps: tuple[int, ...] = (1, 2, 5, 10)
    npg_step_sizes: tuple[float, ...] = (0.5, 0.1, 0.2, 1.0)
    omda: tuple[tuple[float, float, float], ...] = ((0.5, 0.1, 0.2), (0.5, 0.1, 1.0), (1.5, 0.1, 0.2), (1.5, 0.1, 1.0))

    def quick(self) -> TabularMaxMinSampled:
        """Forty micro steps, three seeds."""
        return dataclasses.replace(
            self, total=40, seeds=3, tuning_seeds=3, model_seeds=(10,), micro_steps=(1, 5), npg_step_sizes=(0.5, 0.2),
            omda=self.omda[:2],
        )  # fmt: skip

    def variants(self) -> dict[str, tuple[str, int, list[dict[str, Any]]]]:
        """Label to method, micro steps a macro step, and the grid; the paper's settings come first."""
        shared = {"trajectories": self.trajectories}
        found: dict[str, tuple[str, int, list[dict[str, Any]]]] = {}
        for count in self.micro_steps:
            grid = [
                {"step_size": eta, "regularisation": alpha, "dual_step": dual, "micro_steps": count, **shared}
                for eta, alpha, dual in self.omda
            ]
            found[f"OMDA, t_k = {count}"] = ("arnpg-omda", 2 * count, grid)
        found[BASELINE] = ("mo-npg", 1, [{"step_size": eta, **shared} for eta in self.npg_step_sizes])
        return found

    def stages(self) -> tuple[str, ...]:
        """Tuning of OMDA at ``t_k = 1`` and of MO-NPG, then one batch for each instance and variant."""
        labels = list(self.variants())
        return (
            f"{labels[0]} tuning",
            f"{BASELINE} tuning",
            *(f"{v} model {s}" for s in self.model_seeds for v in labels),
        )

    def run(self, stages: Stages) -> Report:
        """Compute and report; ``found[seed][label]`` is ``min_i V_i`` of ``(2, seeds, steps)``."""
        variants = self.variants()
        first = next(iter(variants))
        best = {label: self._tune(stages, label) for label in (first, BASELINE)}
        found: dict[int, dict[str, np.ndarray]] = {}
        for seed in self.model_seeds:
            found[seed] = {}
            for label, (_, _, grid) in variants.items():
                picked = [grid[0], grid[best.get(label, best[first])]]
                compute = lambda v=label, g=picked, s=seed: self._values(v, g, s, range(self.seeds))  # noqa: E731
                found[seed][label] = stages.stage(f"{label} model {seed}", compute)["values"].min(axis=-1)
        return self._report(found)

    def _values(self, label: str, grid: list[dict[str, Any]], seed: int, seeds: Any) -> dict[str, np.ndarray]:
        method, count, _ = self.variants()[label]
        steps = max(self.total // count, 1)
        return {"values": sampled_values(method, MaxMin(), random_cmdp(seed), grid, steps, seeds)}

    def _tune(self, stages: Stages, label: str) -> int:
        """The setting whose last fifth of iterates is best, on seeds that are not reported."""
        seeds = range(1000, 1000 + self.tuning_seeds)
        grid = self.variants()[label][2]
        compute = lambda: self._values(label, grid, self.model_seeds[0], seeds)  # noqa: E731
        values = stages.stage(f"{label} tuning", compute)["values"].min(axis=-1)
        return int(values[:, :, -max(values.shape[2] // 5, 1) :].mean(axis=(1, 2)).argmax())

    def _report(self, found: dict[int, dict[str, np.ndarray]]) -> Report:
        figures, claims, rows = [], [], []
        for seed, runs in found.items():
            optimal = optimum(random_cmdp(seed), MaxMin()).value
            for index, what in enumerate(("the paper's settings", "best of the grid")):
                title = f"{what}, instance {seed}"
                lines = {label: values[index] for label, values in runs.items()}
                name = f"{self.name}-{seed}-{('paper', 'tuned')[index]}"
                heading = f"Sampled max-min, {title}: {self.seeds} seeds, mean ± 1 sd"
                figures.append(Figure(name, heading, self.place, (self._panel(lines, optimal),)))
                claims += self._claims(title, lines)
                rows += [self._row(title, label, line, optimal) for label, line in lines.items()]
        summary = (
            f"{self.seeds} seeds; true value of the least objective of the sampled iterates against micro steps in all "
            "(OMDA's two inner loops both count), with one standard deviation. Final figures average the last tenth."
        )
        columns = ("settings", "method", "least value at the end", "below the optimum")
        return Report(
            self.name, summary, tuple(figures), tuple(claims), (Table("Last iterates", columns, tuple(rows)),)
        )

    def _panel(self, lines: dict[str, np.ndarray], optimal: float) -> Panel:
        variants = self.variants()
        series = [
            curve(label, variants[label][1] * np.arange(1, line.shape[1] + 1), *band(line))
            for label, line in lines.items()
        ]
        return panel(
            "least value of the last iterate", "micro steps in all", "min V_i (discounted)", series,
            level=optimal, level_label="optimum",
        )  # fmt: skip

    def _claims(self, title: str, lines: dict[str, np.ndarray]) -> list[Claim]:
        final = {label: _end(line) for label, line in lines.items()}
        base = final[BASELINE]
        ours = [label for label in final if label != BASELINE]
        return [
            Claim(
                f"{label} ends above MO-NPG at equal micro steps ({title})",
                self.place,
                paired(final[label], base),
                above(final[label], base),
            )
            for label in (ours[0], ours[-1])
        ]

    def _row(self, title: str, label: str, line: np.ndarray, optimal: float) -> tuple[str, ...]:
        mean, low, high = interval(_end(line))
        return title, label, f"{mean:.4f} [{low:.4f}, {high:.4f}]", f"{optimal - mean:.4f}"


def _end(line: np.ndarray) -> np.ndarray:
    """The mean of the last tenth of each run's steps."""
    return line[:, -max(line.shape[1] // 10, 1) :].mean(axis=1)
