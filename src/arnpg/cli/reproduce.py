"""``arnpg reproduce NAME...``: the paper's experiments, each into a run folder, with its claims measured."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from arnpg.cli.parser import Parser, UsageError
from arnpg.cli.terminal import Section, complain, show

if TYPE_CHECKING:
    from arnpg.cli.reproduction import Outcome
    from arnpg.experiments.experiment import AbstractExperiment
    from arnpg.runs.folder import RunFolder
    from arnpg.runs.progress import Progress

__all__ = ["main", "resume"]

EXAMPLES = """\
Each experiment runs stage by stage into its folder, DIR/NAME. Interrupted or killed, it goes on where it was: with the
same command, or `arnpg resume DIR/NAME`. A folder that is finished is reported, not computed again. Other settings need
another DIR.

examples:
  arnpg reproduce --list
  arnpg reproduce tabular-cmdp
  arnpg reproduce --all --quick
  arnpg reproduce tabular-sumlog --set models=5 "step_sizes=[4.5, 9.0]" --out runs/other
  arnpg report runs/tabular-cmdp --open

exit codes: 0 finished, whether or not the paper's claims hold; 2 bad input, 5 storage, 130/143 interrupted.
"""

KIND = "reproduce"


class Plan(NamedTuple):
    """An experiment with its settings, and where it goes."""

    name: str
    experiment: AbstractExperiment
    folder: Path
    seconds: float


def main(argv: list[str]) -> int:
    """Run them; 0 where they are finished, whatever they found."""
    given = _parser().read(argv)
    if given is None:
        return 0
    if given.list:
        _list()
        return 0
    plans = [_plan(name, given) for name in _names(given)]
    _prepare(given.out)
    outcomes: list[Outcome] = []
    with _showing(outcomes), _machinery(plans, given.quiet) as progress:
        for plan in plans:
            outcomes.append(_run(plan, ["arnpg", KIND, *argv], progress))
    return 0


def resume(folder: RunFolder, *, resume: str, quiet: bool, force: bool = False) -> int:
    """Continue a locked folder; a stage whose file is damaged is computed again in either mode."""
    del resume, force
    from arnpg.cli.reproduction import carry_out
    from arnpg.experiments.registry import find, load
    from arnpg.runs.config import build

    name = str(folder.config["experiment"])
    experiment = build(load(name), folder.config["settings"], f"{folder.path}: ")
    plan = Plan(name, experiment, folder.path, find(name).seconds)
    outcomes: list[Outcome] = []
    with _showing(outcomes), _machinery([plan], quiet) as progress:
        outcomes.append(carry_out(folder, experiment, progress.part(name), plan.seconds))
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="arnpg reproduce",
        usage="arnpg reproduce (NAME... | --all | --list) [--quick] [--out DIR] [--set FIELD=VALUE ...]",
        description="Run experiments of the paper, and measure each of its claims.",
        epilog=EXAMPLES,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; --list names them")
    parser.add_argument("--all", action="store_true", help="every experiment")
    parser.add_argument("--list", action="store_true", help="names, places in the paper, expected times")
    parser.add_argument("--quick", action="store_true", help="a few seconds each, into DIR/NAME-quick")
    parser.add_argument("--out", metavar="DIR", default="runs", help="where the folders go (default runs)")
    parser.add_argument("--set", nargs="+", action="append", metavar="FIELD=VALUE", help="settings, as in TOML")
    parser.add_argument("--config", metavar="FILE.toml", help="settings from a file; --set goes before it")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser


def _names(given: argparse.Namespace) -> list[str]:
    from arnpg.experiments.registry import EXPERIMENTS, find

    if given.all and given.names:
        raise UsageError("give names or --all, not both.")
    names = list(EXPERIMENTS) if given.all else list(dict.fromkeys(given.names))
    if not names:
        raise UsageError("which experiment? Give a name, or --all; --list names them.")
    for name in names:
        find(name)
    return names


def _list() -> None:
    from arnpg.experiments.registry import EXPERIMENTS

    rows = [
        (name, entry.place, entry.about, f"{entry.seconds:.0f} s", f"{entry.quick_seconds:.0f} s")
        for name, entry in EXPERIMENTS.items()
    ]
    show([Section("Experiments (about so long on two cores)", rows, ("name", "place", "what", "time", "--quick"))])


def _plan(name: str, given: argparse.Namespace) -> Plan:
    """Settings: the defaults or the quick ones, then the file, then the words."""
    from arnpg.experiments.registry import find, load
    from arnpg.runs.config import load_config, parse_overrides, read_toml

    kind: Any = load(name)
    words: Sequence[str] = [word for group in given.set or [] for word in group]
    settings = load_config(kind, given.config, words)
    entry = find(name)
    if given.quick:
        named = {key.partition(".")[0] for key in parse_overrides(words)}
        named |= set(read_toml(given.config)) if given.config is not None else set()
        settings = dataclasses.replace(kind().quick(), **{field: getattr(settings, field) for field in named})
    folder = Path(given.out) / (f"{name}-quick" if given.quick else name)
    return Plan(name, settings, folder, entry.quick_seconds if given.quick else entry.seconds)


def _prepare(out: str) -> None:
    """The folder of the folders; its own parent must be there, so that a missing mount is noticed."""
    from arnpg.runs.files import storage

    with storage(out):
        Path(out).mkdir(exist_ok=True)


def _run(plan: Plan, command: Sequence[str], progress: Progress) -> Outcome:
    from arnpg.cli.reproduction import carry_out, stored
    from arnpg.runs.folder import RunFolder

    part, settings = progress.part(plan.name), cast(Any, plan.experiment)
    config = {"experiment": plan.name, "settings": dataclasses.asdict(settings)}
    with RunFolder.enter(plan.folder, KIND, config, command=command) as folder:
        if folder.finished:
            part.update(1.0)
            return stored(folder)
        return carry_out(folder, plan.experiment, part, plan.seconds)


@contextlib.contextmanager
def _machinery(plans: Sequence[Plan], quiet: bool) -> Iterator[Progress]:
    """Progress of the whole, kept compilations, and signals that are answered in time."""
    from arnpg.cli.compile_cache import compile_cache
    from arnpg.cli.patience import patient
    from arnpg.runs.progress import Progress

    parts = {plan.name: plan.seconds for plan in plans}
    farewell = "ended in the middle of a stage; the stages before it are kept"
    with patient(farewell), compile_cache(), Progress(parts, quiet=quiet) as progress:
        yield progress


@contextlib.contextmanager
def _showing(outcomes: list[Outcome]) -> Iterator[None]:
    """Print what is finished, also where the next one is interrupted."""
    from arnpg.cli import Terminated
    from arnpg.cli.findings import show_outcome

    try:
        yield
    except (KeyboardInterrupt, Terminated):
        complain("finished stages are kept; the same command, or `arnpg resume`, goes on from there")
        raise
    finally:
        for outcome in outcomes:
            show_outcome(outcome)
