"""Figure 2: the random CMDP from sampled trajectories, ARNPG-EPD against NPG-PD and CRPO."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, ClassVar

import numpy as np

from arnpg.examples.random_cmdp import LIMIT, random_cmdp
from arnpg.experiments.experiment import AbstractExperiment, Stages
from arnpg.experiments.statistics import above, band, paired, share
from arnpg.experiments.tabular import CMDP, averages, curve, optimum, panel, sampled_values
from arnpg.intervals import interval
from arnpg.report.figure import Claim, Figure, Report, Table

__all__ = ["TabularCMDPSampled"]

LABELS = {"arnpg-epd": "ARNPG-EPD", "npg-pd": "NPG-PD", "crpo": "CRPO"}
TAIL = 20


@dataclasses.dataclass(frozen=True)
class TabularCMDPSampled(AbstractExperiment):
    """Settings of Section 5.2 and Appendix A.1.

    Attributes:
        steps: macro steps.
        seeds: runs a method.
        tuning_seeds: other runs, on which settings are chosen (ours).
        trajectories: for each state and action, an iteration.
        model_seeds: the published instance and a second one (ours).
        step_sizes: ``eta`` of EPD and NPG-PD; the paper's is 1.
        dual_steps: ``eta'``; the paper's is 1.
        crpo_step_sizes: the paper's grid, of which it chooses 1.
        tolerance: of CRPO (Appendix A.1).
    """

    name: ClassVar[str] = "tabular-cmdp-sampled"
    place: ClassVar[str] = "Section 5.2, Figure 2"
    about: ClassVar[str] = "reward and violation from sampled trajectories: ARNPG-EPD, NPG-PD, CRPO"

    steps: int = 300
    seeds: int = 10
    tuning_seeds: int = 3
    trajectories: int = 20
    model_seeds: tuple[int, ...] = (10, 11)
    step_sizes: tuple[float, ...] = (0.3, 1.0)
    dual_steps: tuple[float, ...] = (0.1, 1.0)
    crpo_step_sizes: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0, 5.0)
    tolerance: float = 0.01

    def quick(self) -> TabularCMDPSampled:
        """Forty steps, three seeds, the paper's settings and one more."""
        return dataclasses.replace(
            self, steps=40, seeds=3, tuning_seeds=3, model_seeds=(10,), step_sizes=(0.3, 1.0), dual_steps=(1.0,),
            crpo_step_sizes=(0.5, 1.0),
        )  # fmt: skip

    def grids(self) -> dict[str, list[dict[str, Any]]]:
        """Every method's settings; the paper's come first."""
        shared = {"trajectories": self.trajectories}
        pairs = [
            {"step_size": eta, "dual_step": dual, **shared}
            for eta, dual in itertools.product(self.step_sizes, self.dual_steps)
        ]
        pairs.sort(key=lambda s: (s["step_size"], s["dual_step"]) != (1.0, 1.0))
        rates = [{"step_size": eta, "tolerance": self.tolerance, **shared} for eta in self.crpo_step_sizes]
        rates.sort(key=lambda s: s["step_size"] != 1.0)
        return {"arnpg-epd": pairs, "npg-pd": pairs, "crpo": rates}

    def stages(self) -> tuple[str, ...]:
        """Tuning, then the runs on each instance, for each method."""
        models = [f"{method} model {seed}" for seed in self.model_seeds for method in LABELS]
        return (*(f"{method} tuning" for method in LABELS), *models)

    def run(self, stages: Stages) -> Report:
        """Compute and report; ``values[model][method]`` is ``(2, seeds, steps, m)``: the paper's settings, the best."""
        chosen = {method: self._tune(stages, method) for method in LABELS}
        values: dict[int, dict[str, np.ndarray]] = {}
        for seed in self.model_seeds:
            values[seed] = {}
            for method, grid in self.grids().items():
                picked = [grid[0], grid[chosen[method]]]
                compute = lambda m=method, g=picked, s=seed: {  # noqa: E731
                    "values": sampled_values(m, CMDP, random_cmdp(s), g, self.steps, range(self.seeds))
                }
                values[seed][method] = stages.stage(f"{method} model {seed}", compute)["values"]
        return self._report(values, chosen)

    def _tune(self, stages: Stages, method: str) -> int:
        """The setting whose last iterates are best on seeds that are not reported."""
        seeds = range(1000, 1000 + self.tuning_seeds)
        grid = self.grids()[method]
        compute = lambda: {  # noqa: E731
            "values": sampled_values(method, CMDP, random_cmdp(self.model_seeds[0]), grid, self.steps, seeds)
        }
        values = stages.stage(f"{method} tuning", compute)["values"][:, :, -TAIL:].mean(axis=(1, 2))
        return int((values[:, 0] - 10 * np.maximum(LIMIT - values[:, 1], 0)).argmax())

    def _report(self, values: dict[int, dict[str, np.ndarray]], chosen: dict[str, int]) -> Report:
        figures, claims, rows = [], [], []
        for seed, runs in values.items():
            best = optimum(random_cmdp(seed), CMDP).value
            for index, what in enumerate(("the paper's settings", "best of the grid")):
                title = f"{what}, instance {seed}"
                lines = {method: runs[method][index] for method in runs}
                figures.append(self._figure(f"{seed}-{('paper', 'tuned')[index]}", title, lines, best))
                claims += self._claims(title, lines)
                rows += self._rows(title, lines, chosen if index else dict.fromkeys(chosen, 0))
        summary = (
            f"{self.seeds} seeds a method; curves are the true values of the sampled iterates, with one standard "
            f"deviation. 'Best of the grid' chosen on {self.tuning_seeds} other seeds by the mean of the last {TAIL} "
            "iterates, a violation counting tenfold. Final figures are means of the last "
            f"{TAIL} iterates with bootstrap 95 % intervals over seeds."
        )
        columns = ("instance and settings", "method", "values", "reward", "violation")
        return Report(
            self.name, summary, tuple(figures), tuple(claims), (Table("Final iterates", columns, tuple(rows)),)
        )

    def _figure(self, name: str, title: str, lines: dict[str, np.ndarray], best: float) -> Figure:
        steps = np.arange(1, self.steps + 1)
        views = {"last iterate": lambda series: series, "average": averages}
        panels = []
        for view, turn in views.items():
            for label, level, pick in (
                ("reward", best, lambda v: v[..., 0]),
                ("violation", 0.0, lambda v: LIMIT - v[..., 1]),
            ):
                series = [curve(LABELS[m], steps, *band(turn(pick(v)))) for m, v in lines.items()]
                text = "optimum" if label == "reward" else "limit"
                panels.append(
                    panel(
                        f"{label}, {view}", "iterations", f"{label} (discounted)", series, level=level, level_label=text
                    )
                )
        heading = f"Sampled CMDP, {title}: {self.seeds} seeds, mean ± 1 sd"
        return Figure(f"{self.name}-{name}", heading, self.place, tuple(panels))

    def _claims(self, what: str, lines: dict[str, np.ndarray]) -> list[Claim]:
        final = {m: v[:, -TAIL:].mean(axis=1) for m, v in lines.items()}
        claims = []
        for other in ("npg-pd", "crpo"):
            ours = np.abs(final["arnpg-epd"][:, 1] - LIMIT)
            theirs = np.abs(final[other][:, 1] - LIMIT)
            text = f"EPD's last iterates are nearer to the limit than {LABELS[other]}'s ({what})"
            claims.append(Claim(text, self.place, f"|violation| {paired(ours, theirs)}", above(theirs, ours)))
            reward = paired(final["arnpg-epd"][:, 0], final[other][:, 0])
            higher = above(final["arnpg-epd"][:, 0], final[other][:, 0])
            text = f"EPD's last iterates have a higher reward than {LABELS[other]}'s ({what})"
            claims.append(Claim(text, self.place, reward, higher))
        return claims

    def _rows(self, title: str, lines: dict[str, np.ndarray], chosen: dict[str, int]) -> list[tuple[str, ...]]:
        rows = []
        for method, values in lines.items():
            final = values[:, -TAIL:].mean(axis=1)
            settings = self.grids()[method][chosen[method]]
            text = ", ".join(f"{k} {v:g}" for k, v in settings.items() if k != "trajectories")
            reward, violation = interval(final[:, 0]), interval(LIMIT - final[:, 1])
            feasible = share(final[:, 1] >= LIMIT)
            rows.append((title, LABELS[method], text, _text(reward), f"{_text(violation)}; {feasible} feasible"))
        return rows


def _text(found: tuple[float, float, float]) -> str:
    return f"{found[0]:.4f} [{found[1]:.4f}, {found[2]:.4f}]"
