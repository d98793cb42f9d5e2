"""Figure 3, and with deviations in Appendix A.2: Acrobot under limits on two costs, EPD against NPG-PD and CRPO."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from arnpg.criteria import Constrained
from arnpg.envs.acrobot import Acrobot
from arnpg.experiments.acrobot import LABELS, TAIL, Setup, blocks, final, line, panel, parts, pooled, region
from arnpg.experiments.experiment import AbstractExperiment, Stages
from arnpg.experiments.statistics import above, paired, share
from arnpg.intervals import interval
from arnpg.report.figure import Claim, Figure, Report, Table

__all__ = ["AcrobotCMDP", "below", "interval_text"]

REWARD, COSTS = "height", ("swing1", "swing2")
PLACE = "Section 5.3, Figure 3"


@dataclasses.dataclass(frozen=True)
class AcrobotCMDP(AbstractExperiment):
    """Settings of Section 5.3 and Appendix A.2.

    Attributes:
        iterations: micro steps, one batch each.
        seeds: runs a method, paired: equal seeds start from equal policies (the paper: 10).
        drawn: seeds in the figures (the paper: 10).
        limit: of both costs, a total of a path of 500 steps.
        micro_steps: of ARNPG-EPD.
        regularisation: alpha of ARNPG-EPD.
        dual_step: of ARNPG-EPD and NPG-PD.
        tolerance: of CRPO.
        max_kl: of a step.
        crpo_max_kl: of a step of CRPO while no, one, or both constraints are violated.
        damping: of the Fisher matrix.
        crpo_damping: of CRPO's.
        fisher_share: the part of a batch that the Fisher matrix is taken over.
        hidden: layers of the actor and of each critic.
        paths: a batch.
        path_steps: a path.
    """

    name: ClassVar[str] = "acrobot-cmdp"
    place: ClassVar[str] = PLACE
    about: ClassVar[str] = "Acrobot under two costs: ARNPG-EPD, NPG-PD, CRPO"

    iterations: int = 300
    seeds: int = 30
    drawn: int = 10
    limit: float = 50.0
    micro_steps: int = 2
    regularisation: float = 1.0
    dual_step: float = 5e-4
    tolerance: float = 0.5
    max_kl: float = 0.003
    crpo_max_kl: tuple[float, ...] = (0.003, 0.006, 0.01)
    damping: float = 1e-3
    crpo_damping: float = 6e-3
    fisher_share: float = 1.0
    hidden: tuple[int, ...] = (128, 128)
    paths: int = 10
    path_steps: int = 500

    def quick(self) -> AcrobotCMDP:
        """Six iterations of small batches, three seeds."""
        return dataclasses.replace(self, iterations=6, seeds=3, drawn=3, hidden=(16,), paths=4, path_steps=100)

    def setups(self) -> dict[str, Setup]:
        """What each method runs with."""
        shared = parts(self.hidden, self.paths, self.path_steps)
        plain = region(self.max_kl, self.damping, self.fisher_share)
        settings = {
            "arnpg-epd": {
                "micro_steps": self.micro_steps,
                "regularisation": self.regularisation,
                "dual_step": self.dual_step,
                "update": plain,
            },
            "npg-pd": {"dual_step": self.dual_step, "update": plain},
            "crpo": {
                "tolerance": self.tolerance,
                "max_kl": self.crpo_max_kl,
                "update": region(self.max_kl, self.crpo_damping, self.fisher_share),
            },
        }
        criterion = Constrained(REWARD, at_most=dict.fromkeys(COSTS, self.limit))
        return {m: Setup(m, Acrobot(), criterion, self.iterations, shared | own) for m, own in settings.items()}

    def stages(self) -> tuple[str, ...]:
        """Ten seeds of a method each."""
        return tuple(stage for method in LABELS for stage, _ in blocks(method, range(self.seeds)))

    def run(self, stages: Stages) -> Report:
        """Compute and report."""
        setups = self.setups()
        runs = {m: pooled(stages, m, setup, range(self.seeds))["values"] for m, setup in setups.items()}
        ends = {m: final(values, self._count(m)) for m, values in runs.items()}
        figures = (self._figure(runs, False), self._figure(runs, True))
        return Report(self.name, self._summary(), figures, tuple(self._claims(ends)), (self._table(ends),))

    def _count(self, method: str) -> int:
        return self.micro_steps if method == "arnpg-epd" else 1

    def _figure(self, runs: dict[str, np.ndarray], shaded: bool) -> Figure:
        panels = []
        for index, name in enumerate((REWARD, *COSTS)):
            series = [
                line(LABELS[m], values[: self.drawn, :, index], self._count(m), shaded) for m, values in runs.items()
            ]
            title = "reward" if index == 0 else f"cost {'I' * index} ({name})"
            panels.append(panel(title, "total of a path of 500 steps", series, self.limit if index else None))
        kind = "with one standard deviation" if shaded else "means"
        title = f"Acrobot under two limits, {self.drawn} seeds, {kind}"
        place = "Appendix A.2" if shaded else self.place
        return Figure(f"{self.name}-{'shaded' if shaded else 'mean'}", title, place, tuple(panels))

    def _claims(self, ends: dict[str, np.ndarray]) -> list[Claim]:
        ours = ends["arnpg-epd"]
        claims = []
        for other in ("npg-pd", "crpo"):
            text = f"ARNPG-EPD's final reward is above {LABELS[other]}'s"
            theirs = ends[other][:, 0]
            claims.append(Claim(text, self.place, paired(ours[:, 0], theirs), above(ours[:, 0], theirs)))
        for method, found in ends.items():
            for index, name in enumerate(COSTS, start=1):
                text = f"{LABELS[method]}'s {name} ends below its limit of {self.limit:g}, in the mean"
                cost = found[:, index]
                claims.append(Claim(text, self.place, interval_text(cost), below(cost, self.limit)))
        text = "ARNPG-EPD's final mean reward reaches 181.8, the paper's lowest"
        claims.append(Claim(text, "Appendix A.2", interval_text(ours[:, 0]), below(-ours[:, 0], -181.8)))
        return claims

    def _table(self, ends: dict[str, np.ndarray]) -> Table:
        rows = []
        for method, found in ends.items():
            columns = (f"{interval_text(found[:, i])}, sd {found[:, i].std(ddof=1):.0f}" for i in range(3))
            rows.append((LABELS[method], *columns, share(np.all(found[:, 1:] <= self.limit, axis=1))))
        names = ("method", "reward", "cost I", "cost II", "seeds with both costs kept")
        return Table("Final values", names, tuple(rows))

    def _summary(self) -> str:
        return (
            f"{self.seeds} seeds a method, paired; the figures show the first {self.drawn}. Final values are means of "
            f"the last {TAIL} of {self.iterations} iterations, with bootstrap 95 % intervals over seeds. A mean below "
            "a limit says little of one run: the last column of the table counts the runs that keep both."
        )


def interval_text(samples: np.ndarray) -> str:
    """``177.3 [163.1, 190.8]``."""
    mean, low, high = interval(samples)
    return f"{mean:.1f} [{low:.1f}, {high:.1f}]"


def below(samples: np.ndarray, limit: float) -> bool | None:
    """Whether the mean is at most the limit; none where the interval holds it."""
    _, low, high = interval(samples)
    return True if high <= limit else False if low > limit else None
