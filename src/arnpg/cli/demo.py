"""``arnpg demo``: two models, three criteria each, certified; a picture of what is achievable; a trained policy."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from arnpg.cli import NOT_CERTIFIED
from arnpg.cli.parser import Parser
from arnpg.cli.terminal import ProgressLine, Section, show

if TYPE_CHECKING:
    from arnpg.criteria import AbstractCriterion
    from arnpg.solution import Solution
    from arnpg.tabular.mdp import MDP
    from arnpg.trained import TrainedRun

__all__ = ["main"]

EXAMPLES = """\
1. The paper's random constrained MDP: 20 states, 10 actions, discount 0.8, the second value at least 3.
2. Two classes of customers share a server with finite buffers (arnpg.examples.two_class_queue): the throughput of one
   class under a limit on the other's delay, fair sharing, and the best worst share of what arrives.

3. A neural policy in an environment without a model: CartPole upright, under a limit on the distance that the cart
   travels from the centre, three seeds in about twenty seconds.

It writes region.png, training.png, both models and trained.npz, to go on with:
  arnpg demo
  arnpg demo --known
  arnpg evaluate demo/trained.npz
  arnpg describe demo/two_class_queue.npz
  arnpg solve demo/two_class_queue.npz --fair "served 1" "served 2" --at-most "waiting 1=2"
"""

DISTANCE = 60.0  # of the cart from the centre, total of an episode; without a limit it settles near 300


class Case(NamedTuple):
    """A model, what is asked of it, and the two objectives of the picture."""

    title: str
    file: str
    mdp: MDP
    criteria: dict[str, AbstractCriterion]
    axes: tuple[str, str]
    limits: tuple[tuple[str, str, float], ...]


def main(argv: list[str]) -> int:
    """Solve, print, draw; 0 where every answer is certified."""
    parser = Parser(
        prog="arnpg demo",
        usage="arnpg demo [--known] [--out FOLDER]",
        description="Solve two models under three criteria, draw what is achievable; train a policy under a limit.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--out", metavar="FOLDER", default="demo", help="where files go (default demo)")
    parser.add_argument("--known", action="store_true", help="the known models only, without the training")
    parser.add_argument("--quiet", action="store_true", help="no progress line")
    given = parser.read(argv)
    if given is None:
        return 0
    from arnpg.storage import check_target, storage

    folder = Path(given.out)
    with storage(f"--out {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    check_target(folder / "region.png")
    cases, line = [_paper(), _queue()], ProgressLine(given.quiet)
    answers = [_solve(case, line) for case in cases]
    written = [_save_model(case, folder) for case in cases]
    picture = _draw(cases, answers, folder)
    sections = [_table(case, found) for case, found in zip(cases, answers, strict=True)]
    if not given.known:
        run = _train(line)
        sections.append(_training_table(run))
        written += _save_training(run, folder)
    line.close()
    rows = [("written", path) for path in [*written, *([picture] if picture else [])]]
    if picture is None:
        rows.append(("no picture", 'matplotlib is missing; install it with pip install "arnpg[plot]"'))
    show([*sections, Section("", rows)])
    return 0 if all(s.certified for found in answers for s in found.values()) else NOT_CERTIFIED


def _paper() -> Case:
    from arnpg.criteria import Constrained, MaxMin, ProportionalFair
    from arnpg.examples.random_cmdp import LIMIT, random_cmdp

    criteria = {
        "most r1, r2 >= 3": Constrained(maximize="r1", at_least={"r2": LIMIT}),
        "proportionally fair": ProportionalFair(),
        "max-min": MaxMin(),
    }
    title = "The paper's random CMDP (20 states, 10 actions)"
    return Case(title, "random_cmdp.npz", random_cmdp(), criteria, ("r1", "r2"), (("r2", ">=", LIMIT),))


def _queue() -> Case:
    from arnpg.criteria import Constrained, MaxMin, ProportionalFair
    from arnpg.examples.two_class_queue import two_class_queue

    arrivals = {"served 1": 0.35, "served 2": 0.25}
    criteria = {
        "most served 1, waiting 2 <= 1": Constrained(maximize="served 1", at_most={"waiting 2": 1.0}),
        "proportionally fair": ProportionalFair(dict.fromkeys(arrivals, 1.0)),
        "max-min share of arrivals": MaxMin(arrivals),
    }
    title = "Two classes of customers, one server (81 states, 3 actions)"
    mdp = two_class_queue(tuple(arrivals.values()))
    return Case(title, "two_class_queue.npz", mdp, criteria, ("served 1", "served 2"), ())


def _solve(case: Case, line: ProgressLine) -> dict[str, Solution]:
    from arnpg.api import solve

    found = {}
    for label, criterion in case.criteria.items():
        line(lambda: f"{case.title}: {label}")  # noqa: B023 (called at once)
        found[label] = solve(case.mdp, criterion)
    return found


def _train(line: ProgressLine) -> TrainedRun:
    """EPD with a dual step for values of a few hundred; small networks, so that compiling is most of the time."""
    from arnpg import envs
    from arnpg.cli.compile_cache import compile_cache
    from arnpg.criteria import Constrained
    from arnpg.neural.natural_gradient import TrustRegion
    from arnpg.neural.networks import Network
    from arnpg.training import train
    from arnpg.training_progress import progress_text

    title, small = "CartPole", Network((32,))
    line(lambda: f"{title}: compiling")
    with compile_cache():
        return train(
            envs.CartPole(),
            Constrained("upright", at_most={"distance": DISTANCE}),
            iterations=60,
            seeds=3,
            progress=lambda seen: line(lambda: f"{title}: {progress_text(seen)}"),
            dual_step=2e-3,
            policy=small,
            critic=small,
            update=TrustRegion(0.01),
        )


def _training_table(run: TrainedRun) -> Section:
    first, names = run.trace.values[:, 0].mean(axis=0), run.names
    rows = [(name, f"{first[i]:.4g}", str(run.values[name])) for i, name in enumerate(names)]
    for label, broken in run.violations.items():
        rows.append((label, "", f"kept by {int((broken == 0).sum())} of {len(broken)} seeds"))
    title = f"CartPole, {len(run.seeds)} seeds, {run.trace.env_steps[-1]:,} steps each; values are totals of an episode"
    return Section(title, rows, ("objective", "at first", "at the end [95 %]"))


def _save_training(run: TrainedRun, folder: Path) -> list[str]:
    run.save(folder / "trained.npz")
    if importlib.util.find_spec("matplotlib") is None:
        return [str(folder / "trained.npz")]
    run.plot(folder / "training.png")
    return [str(folder / "trained.npz"), str(folder / "training.png")]


def _save_model(case: Case, folder: Path) -> str:
    from arnpg.tabular.readers import save_model

    save_model(case.mdp, folder / case.file)
    return str(folder / case.file)


def _draw(cases: list[Case], answers: list[dict[str, Solution]], folder: Path) -> str | None:
    if importlib.util.find_spec("matplotlib") is None:
        return None
    from arnpg.report.plots import Panel, plot_regions
    from arnpg.tabular.region import achievable_region

    panels = []
    for case, found in zip(cases, answers, strict=True):
        values = {label: solution.values for label, solution in found.items()}
        panels.append(Panel(case.title, achievable_region(case.mdp, case.axes), values, case.limits))
    plot_regions(panels, folder / "region.png")
    return str(folder / "region.png")


def _table(case: Case, found: dict[str, Solution]) -> Section:
    header = ("criterion", *case.mdp.names, "objective", "gap", "price")
    rows = []
    for label, solution in found.items():
        values = (f"{value:.4g}" for value in solution.values.values())
        prices = ", ".join(f"{price:.4g}" for price in solution.multipliers.values())
        rows.append((label, *values, f"{solution.objective:.6g}", f"{solution.gap:.0e}", prices))
    return Section(case.title, rows, header)
