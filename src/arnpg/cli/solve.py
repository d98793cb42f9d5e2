"""``arnpg solve``: the best policy of a known model under a criterion, with a certified gap."""

from __future__ import annotations

import argparse
import importlib.util
import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arnpg.cli import NOT_CERTIFIED
from arnpg.cli.criterion_flags import add_criterion_flags, criterion_words, make_criterion
from arnpg.cli.parser import Parser, UsageError, did_you_mean, number, pairs
from arnpg.cli.terminal import ProgressLine, Section, complain, show, write

if TYPE_CHECKING:
    from arnpg.api import Progress
    from arnpg.criteria import AbstractCriterion
    from arnpg.errors import InfeasibleError
    from arnpg.solution import Solution
    from arnpg.tabular.mdp import MDP

__all__ = ["main"]

EXAMPLES = """\
Say what "best" means with one of --maximize, --fair, --max-min, --linear; add limits to any of them.

examples:
  the most throughput while the battery's value stays at 3 or more
    arnpg solve model.npz --maximize throughput --at-least battery=3.0
  proportional fairness of two users, the second counted twice, under a delay limit
    arnpg solve model.npz --fair alice bob=2 --at-most delay=4
  the best worst case of every objective, saved with its policy, with a picture
    arnpg solve model.npz --max-min --out solution.npz --plot solution.png
  one of the paper's algorithms, with its settings
    arnpg solve model.npz --fair --method arnpg-imd --set step_size=4.5 --steps 1000
  in a script
    arnpg solve model.npz --fair --json | python -m json.tool

exit codes: 0 certified, 2 bad input, 3 infeasible or not certified, 5 storage, 130/143 interrupted.
`arnpg describe model.npz` lists the objectives' names and the values each can reach.
"""

FIGURES = (".png", ".svg", ".pdf")
METHODS = ("arnpg", "arnpg-imd", "arnpg-epd", "arnpg-omda", "npg-pd", "crpo", "mo-npg")


def main(argv: list[str]) -> int:
    """Solve; 0 where the answer is certified, 3 where it is not or there is none."""
    given = _parser().read(argv)
    if given is None:
        return 0
    _rescue_model(given)
    if given.model is None:
        raise UsageError("which model? Give the path of a .npz file.")
    words = criterion_words(given)
    settings = pairs("--set", given.set)
    _check_targets(given)
    from arnpg.errors import InfeasibleError
    from arnpg.tabular.readers import load_model

    mdp = load_model(given.model)
    try:
        return _solve(given, mdp, make_criterion(words), settings)
    except InfeasibleError as error:
        _infeasible(mdp, error, given.json)
        return NOT_CERTIFIED


def _parser() -> Parser:
    parser = Parser(
        prog="arnpg solve",
        usage="arnpg solve MODEL.npz (--maximize NAME | --fair | --max-min | --linear NAME=W ...) [limits] [options]",
        description="Find the best policy of a known model, and prove how far from the optimum it can be.",
        epilog=EXAMPLES,
    )
    parser.add_argument("model", nargs="?", metavar="MODEL.npz", help="a model: arnpg.save_model, or numpy.savez")
    add_criterion_flags(parser)
    how = parser.add_argument_group("how")
    how.add_argument("--gap", metavar="G", help="relative gap to certify (default 1e-6)")
    how.add_argument("--method", metavar="M", default="arnpg", help=f"{', '.join(METHODS)} (default arnpg)")
    how.add_argument("--set", nargs="+", action="append", metavar="NAME=V", help="a setting of a plain algorithm")
    how.add_argument("--steps", metavar="K", help="macro steps at most")
    how.add_argument("--time-limit", metavar="S", help="seconds at most")
    how.add_argument("--checkpoint", metavar="FILE.npz", help="keep policies seen here; go on from them if it exists")
    out = parser.add_argument_group("output")
    out.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    out.add_argument("--out", metavar="FILE.npz", help="save the solution: policy, values, trace")
    out.add_argument("--plot", metavar="FILE.png", help="draw objective, bound and gap (.png, .svg, .pdf)")
    out.add_argument("--quiet", action="store_true", help="no progress line")
    return parser


def _rescue_model(given: argparse.Namespace) -> None:
    """``--fair model.npz`` gives the flag what was meant as the model; hand it back."""
    single = [given.fair or [], given.max_min or [], given.linear or []]
    for group in [*single, *(given.at_least or []), *(given.at_most or [])]:
        if given.model is None and group and "=" not in group[-1] and group[-1].endswith(".npz"):
            given.model = group.pop()


def _check_targets(given: argparse.Namespace) -> None:
    """Refuse what could not be written, before the work and not after it."""
    from arnpg.storage import check_target

    if given.method not in METHODS:
        raise UsageError(f"--method {given.method!r} is not known{did_you_mean(given.method, METHODS)}")
    for flag, target in (("--out", given.out), ("--plot", given.plot), ("--checkpoint", given.checkpoint)):
        if target is not None:
            check_target(target, f"{flag} {target}")
    if given.plot is not None and Path(given.plot).suffix.lower() not in FIGURES:
        raise UsageError(f"--plot must end with {', '.join(FIGURES)}, got {given.plot!r}.")
    if given.plot is not None and importlib.util.find_spec("matplotlib") is None:
        raise UsageError('--plot needs matplotlib; install it with pip install "arnpg[plot]".')


def _solve(given: argparse.Namespace, mdp: MDP, criterion: AbstractCriterion, settings: dict[str, float]) -> int:
    from arnpg.api import solve
    from arnpg.cli.solution_view import as_json, sections

    line = ProgressLine(given.quiet)
    named: dict[str, Any] = {name: _setting(name, value) for name, value in settings.items()}
    try:
        solution = solve(
            mdp,
            criterion,
            method=given.method,
            gap=number("--gap", given.gap) if given.gap is not None else 1e-6,
            steps=_whole("--steps", given.steps),
            time_limit=number("--time-limit", given.time_limit) if given.time_limit is not None else None,
            checkpoint=given.checkpoint,
            progress=lambda seen: line(lambda: _progress_text(mdp, seen)),
            **named,
        )
    finally:
        line.close()
    if given.out is not None:
        solution.save(given.out)
    if given.plot is not None:
        solution.plot(given.plot)
    if given.json:
        write(json.dumps(as_json(solution, given.out), indent=2, allow_nan=False) + "\n")
    else:
        show(sections(solution, given.out, given.plot))
    return _verdict(solution)


def _verdict(solution: Solution) -> int:
    """The exit code, with a complaint where there is a reason."""
    if not solution.certified:
        complain(f"not certified: the relative gap is {solution.relative_gap:.1e}, violation {solution.violation:.1e}.")
    if any(note.startswith("interrupted") for note in solution.notes):
        return 128 + signal.SIGINT
    return 0 if solution.certified else NOT_CERTIFIED


def _progress_text(mdp: MDP, seen: Progress) -> str:
    values = "  ".join(f"{name} {value:.6g}" for name, value in zip(mdp.names, seen.values, strict=True))
    steps = f"{seen.step}/{seen.steps}" if seen.steps else f"{seen.step}"
    left = "" if seen.left is None else f", about {seen.left:.0f} s left"
    return f"step {steps}  gap {seen.gap:.1e}  {seen.seconds:.1f} s{left}  {values}"


def _whole(flag: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.lstrip("+-").isdigit():
        raise UsageError(f"{flag} must be a whole number, got {text!r}.")
    return int(text)


def _setting(name: str, value: float) -> float | int:
    """A setting as its algorithm wants it: positive, and whole where it counts."""
    if not 0 < value < float("inf"):
        raise UsageError(f"--set {name} must be a finite number > 0, got {value:g}.")
    if name != "micro_steps":
        return value
    if not value.is_integer():
        raise UsageError(f"--set {name} must be a whole number, got {value:g}.")
    return int(value)


def _infeasible(mdp: MDP, error: InfeasibleError, as_json: bool) -> None:
    """Say that no policy meets the limits, how near one comes, and at which values."""
    complain(str(error))
    proof = error.proof
    if proof is None:
        return
    values = dict(zip(mdp.names, map(float, proof.values), strict=True))
    if as_json:
        found = {
            "status": "infeasible",
            "message": str(error),
            "weights": [float(weight) for weight in proof.weights],
            "shortfall": float(proof.shortfall),
            "violations": [float(violation) for violation in proof.violations],
            "closest_values": values,
        }
        write(json.dumps(found, indent=2, allow_nan=False) + "\n")
        return
    rows = [(name, f"{value:.9g}") for name, value in values.items()]
    show([Section("The policy that comes closest has these values", rows, ("objective", "value"))])
