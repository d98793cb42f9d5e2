"""Not in the paper: a constrained run on Acrobot that can be relied on, each method at its best of equal budgets."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from arnpg.criteria import Constrained
from arnpg.envs.acrobot import Acrobot
from arnpg.experiments.acrobot import TAIL, Setup, blocks, final, line, panel, parts, pooled, region
from arnpg.experiments.acrobot_cmdp import COSTS, REWARD, interval_text
from arnpg.experiments.experiment import AbstractExperiment, Stages
from arnpg.experiments.statistics import above, paired, share
from arnpg.report.figure import Claim, Figure, Report, Table

__all__ = ["AcrobotReliable"]

PAPER, STEADY, NPG, CRPO = "arnpg-epd", "arnpg-epd-steady", "npg-pd", "crpo"
TITLES = {PAPER: "ARNPG-EPD, the paper's settings", STEADY: "ARNPG-EPD steady", NPG: "NPG-PD tuned", CRPO: "CRPO tuned"}
WANTED = 0.9  # of the seeds within both limits


@dataclasses.dataclass(frozen=True)
class AcrobotReliable(AbstractExperiment):
    """An addition to the paper; every setting here that is not Section 5.3's is ours.

    Attributes:
        iterations: micro steps, one batch each.
        seeds: runs a method, paired: equal seeds start from equal policies; none of them was tuned on.
        ablation_seeds: runs a row of the ablation.
        limit: of both costs, a total of a path of 500 steps.
        dual_step: of ARNPG-EPD as in the paper (Section 5.3).
        steady_dual_step: of the steady one.
        steady_damping: gain of the violation itself.
        steady_margin: relative tightening of the limits.
        steady_clip: the most slack that the integral sees, relative to the limits.
        npg_dual_step: of NPG-PD.
        npg_margin: relative tightening of NPG-PD's limits.
        crpo_tolerance: of CRPO.
        crpo_margin: relative tightening of CRPO's limits.
        crpo_max_kl: of a step of CRPO while no, one, or both constraints are violated.
        crpo_damping: of CRPO's Fisher matrix.
        max_kl: of a step.
        damping: of the Fisher matrix.
        paper_fisher_share: the part of a batch that the Fisher matrix is taken over, for the paper's settings.
        fisher_share: the same, for the tuned ones.
        hidden: layers of the actor and of each critic.
        paths: a batch.
        path_steps: a path.
    """

    name: ClassVar[str] = "acrobot-reliable"
    place: ClassVar[str] = "not in the paper"
    about: ClassVar[str] = "Acrobot under two costs, limits kept run by run: a steady ARNPG-EPD, NPG-PD and CRPO tuned"

    iterations: int = 300
    seeds: int = 30
    ablation_seeds: int = 10
    limit: float = 50.0
    dual_step: float = 5e-4
    steady_dual_step: float = 2e-3
    steady_damping: float = 0.02
    steady_margin: float = 0.1
    steady_clip: float = 0.2
    npg_dual_step: float = 2e-3
    npg_margin: float = 0.1
    crpo_tolerance: float = 0.5
    crpo_margin: float = 0.1
    crpo_max_kl: tuple[float, ...] = (0.003, 0.003, 0.003)
    crpo_damping: float = 6e-3
    max_kl: float = 0.003
    damping: float = 1e-3
    paper_fisher_share: float = 1.0
    fisher_share: float = 0.2
    hidden: tuple[int, ...] = (128, 128)
    paths: int = 10
    path_steps: int = 500

    def quick(self) -> AcrobotReliable:
        """Six iterations of small batches, three seeds; programs that ``acrobot-cmdp``'s quick run has compiled."""
        small: dict[str, Any] = {"iterations": 6, "seeds": 3, "ablation_seeds": 2, "fisher_share": 1.0}
        return dataclasses.replace(self, hidden=(16,), paths=4, path_steps=100, **small)

    def stages(self) -> tuple[str, ...]:
        """Ten seeds of a method, or of a row of the ablation, each."""
        methods = [stage for method in TITLES for stage, _ in blocks(method, range(self.seeds))]
        rows = [stage for row in self._ablation() for stage, _ in blocks(row, range(self.ablation_seeds))]
        return (*methods, *rows)

    def run(self, stages: Stages) -> Report:
        """Compute and report."""
        runs = {m: pooled(stages, m, self._setup(m), range(self.seeds))["values"] for m in TITLES}
        ends = {m: final(values, _count(m)) for m, values in runs.items()}
        rows = {"all of it": ends[STEADY]}
        for row, changed in self._ablation().items():
            setup = self._setup(STEADY, changed)
            rows[row] = final(pooled(stages, row, setup, range(self.ablation_seeds))["values"], _count(STEADY))
        tables = (
            self._table("Final values", "method", {TITLES[m]: end for m, end in ends.items()}),
            self._table("Ablation of the steady ARNPG-EPD", "row", rows),
        )
        return Report(self.name, self._summary(), (self._figure(runs),), tuple(self._claims(ends)), tables)

    def _setup(self, method: str, changed: dict[str, float] | None = None) -> Setup:
        share = self.paper_fisher_share if method == PAPER else self.fisher_share
        damping = self.crpo_damping if method == CRPO else self.damping
        own: dict[str, dict[str, Any]] = {
            PAPER: {"micro_steps": 2, "regularisation": 1.0, "dual_step": self.dual_step},
            STEADY: {"micro_steps": 2, "regularisation": 1.0, **self._steady(), **(changed or {})},
            NPG: {"dual_step": self.npg_dual_step},
            CRPO: {"tolerance": self.crpo_tolerance, "max_kl": self.crpo_max_kl},
        }
        margin = {NPG: self.npg_margin, CRPO: self.crpo_margin}.get(method, 0.0)
        criterion = Constrained(REWARD, at_most=dict.fromkeys(COSTS, self.limit * (1 - margin)))
        shared = parts(self.hidden, self.paths, self.path_steps)
        settings = {**shared, "update": region(self.max_kl, damping, share), **own[method]}
        return Setup(method, Acrobot(), criterion, self.iterations, settings)

    def _steady(self) -> dict[str, float]:
        return {
            "dual_step": self.steady_dual_step,
            "damping": self.steady_damping,
            "margin": self.steady_margin,
            "clip": self.steady_clip,
        }

    def _ablation(self) -> dict[str, dict[str, float]]:
        """What is changed in each row."""
        return {
            "no margin": {"margin": 0.0},
            "no damping beyond EPD's": {"damping": self.steady_dual_step},
            "no clip": {"clip": 1e6},
        }

    def _figure(self, runs: dict[str, np.ndarray]) -> Figure:
        panels = []
        for index, name in enumerate((REWARD, *COSTS)):
            series = [line(TITLES[m], values[..., index], _count(m), shaded=m == STEADY) for m, values in runs.items()]
            title = "reward" if index == 0 else f"cost {'I' * index} ({name})"
            panels.append(panel(title, "total of a path of 500 steps", series, self.limit if index else None))
        title = f"Acrobot under two limits, means of {self.seeds} seeds, one standard deviation of the steady EPD"
        return Figure(self.name, title, self.place, tuple(panels))

    def _claims(self, ends: dict[str, np.ndarray]) -> list[Claim]:
        ours, kept = ends[STEADY], {m: self._kept(end) for m, end in ends.items()}
        text = f"the steady ARNPG-EPD keeps both limits on at least {WANTED:.0%} of the seeds"
        claims = [Claim(text, self.place, share(kept[STEADY]), bool(kept[STEADY].mean() >= WANTED))]
        for other in (PAPER, NPG, CRPO):
            text = f"its final reward is above that of {TITLES[other]}"
            measured = f"{paired(ours[:, 0], ends[other][:, 0])}; the other keeps both limits on {share(kept[other])}"
            claims.append(Claim(text, self.place, measured, above(ours[:, 0], ends[other][:, 0])))
        return claims

    def _kept(self, found: np.ndarray) -> np.ndarray:
        return np.all(found[:, 1:] <= self.limit, axis=1)

    def _table(self, title: str, head: str, rows: dict[str, np.ndarray]) -> Table:
        cells = []
        for name, found in rows.items():
            columns = (f"{interval_text(found[:, i])}, sd {found[:, i].std(ddof=1):.0f}" for i in range(3))
            cells.append((name, *columns, share(self._kept(found))))
        return Table(title, (head, "reward", "cost I", "cost II", "seeds with both costs kept"), tuple(cells))

    def _summary(self) -> str:
        return (
            f"{self.seeds} seeds a method, paired; no seed was tuned on. Every method had the same budget of tuning on "
            f"other seeds. Final values are means of the last {TAIL} of {self.iterations} iterations, with bootstrap "
            f"95 % intervals over seeds. The ablation's rows have {self.ablation_seeds} seeds."
        )


def _count(method: str) -> int:
    """Micro steps of a macro step."""
    return 2 if method in (PAPER, STEADY) else 1
