"""``arnpg train ENV``: policies of several seeds under a criterion, into a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from arnpg.cli.criterion_flags import add_criterion_flags, criterion_words, make_criterion, with_discounts
from arnpg.cli.environment import ENVIRONMENTS, make_environment
from arnpg.cli.host_flags import add_host_flags, host_options
from arnpg.cli.parser import Parser, UsageError, pairs, whole
from arnpg.cli.terminal import complain, write

if TYPE_CHECKING:
    from arnpg.plan import Plan
    from arnpg.runs.folder import RunFolder

__all__ = ["main", "resume"]

EXAMPLES = f"""\
environments:
{chr(10).join(f"  {name:<16} {what}" for name, what in ENVIRONMENTS.items())}
  Hopper-v5        any id of Gymnasium, MO-Gymnasium, EnvPool (docs/gymnasium.md)
  module:Name      your own (docs/environments.md)

Interrupted or killed, a run goes on where it was: with the same command, or `arnpg resume RUN`. Settings are those of
the method (dual_step, micro_steps, ...) and, with dots, those of the parts of its inner loop.

examples:
  arnpg train acrobot --maximize height --at-most swing1=50 swing2=50 --seeds 10 --out runs/acrobot
  arnpg train cartpole --maximize upright --at-most distance=20 --set rollout.paths=20 policy.hidden=64,64
  arnpg train acrobot-rewards --fair --offset 1 --set micro_steps=5 values=path
  arnpg train Hopper-v5 --objectives return=reward left=info:x_velocity --maximize return --at-most left=82.7 \\
      --discounted left=0.99 --method arppo-epd --iterations 500 --seeds 5
  arnpg evaluate runs/acrobot --episodes 100

exit codes: 0 trained, 2 bad input, 4 environment fault, 5 storage, 130/143 interrupted.
"""

KIND = "train"


def main(argv: list[str]) -> int:
    """Train; 0 where it is finished."""
    given = _parser().read(argv)
    if given is None:
        return 0
    if given.env is None:
        raise UsageError(f"which environment? {', '.join(ENVIRONMENTS)}, or module:Name.")
    first, count = whole("--seed", given.seed), whole("--seeds", given.seeds, 1)
    command = {
        "env": given.env,
        "host": host_options(given),
        "criterion": with_discounts(criterion_words(given), pairs("--discounted", given.discounted)),
        "method": given.method,
        "iterations": whole("--iterations", given.iterations, 1),
        "seeds": list(range(first, first + count)),
        "settings": _settings(given.set),
    }
    plan = _plan(command)
    folder = Path(given.out or f"runs/{plan.method}-{given.env.replace(':', '-')}")
    return _train(plan, folder, command, given.quiet, force=given.force)


def resume(folder: RunFolder, *, resume: str, quiet: bool, force: bool = False) -> int:
    """Continue a folder; one that a Python program began has no command, and is continued by that program."""
    command = folder.config.get("command")
    folder.close()
    if command is None:
        raise UsageError(f"{folder.path} was begun by arnpg.train in Python; the same call continues it.")
    return _train(_plan(command), folder.path, command, quiet, resume, force)


def _parser() -> Parser:
    parser = Parser(
        prog="arnpg train",
        usage="arnpg train ENV (--maximize NAME | --fair | --max-min | --linear NAME=W ...) [limits] [options]",
        description="Train neural policies in an environment, one for each seed.",
        epilog=EXAMPLES,
    )
    parser.add_argument("env", nargs="?", metavar="ENV", help="an environment, see below")
    add_criterion_flags(parser)
    add_host_flags(parser)
    how = parser.add_argument_group("how")
    how.add_argument("--discounted", nargs="+", action="append", metavar="NAME=D", help="limits on discounted values")
    how.add_argument("--method", metavar="M", help="arnpg-epd, npg-pd, crpo, ... (default: what suits the criterion)")
    how.add_argument("--seeds", metavar="N", default="1", help="how many runs (default 1)")
    how.add_argument("--seed", metavar="S", default="0", help="the first one's seed (default 0)")
    how.add_argument("--iterations", metavar="K", default="300", help="micro steps (default 300)")
    how.add_argument("--set", nargs="+", action="append", metavar="NAME=V", help="settings, such as dual_step=1e-3")
    out = parser.add_argument_group("output")
    out.add_argument("--out", metavar="RUN", help="the run's folder (default runs/METHOD-ENV)")
    out.add_argument("--force", action="store_true", help="go on in a folder begun with other versions of ENV")
    out.add_argument("--quiet", action="store_true", help="no progress")
    return parser


def _plan(command: dict[str, Any]) -> Plan:
    from arnpg.plan import prepare

    return prepare(
        make_environment(command["env"], **command["host"]),
        make_criterion(command["criterion"]),
        method=command["method"],
        iterations=command["iterations"],
        seeds=command["seeds"],
        **command["settings"],
    )


def _train(
    plan: Plan, folder: Path, command: dict[str, Any], quiet: bool, resume: str = "strict", force: bool = False
) -> int:
    from arnpg.cli.compile_cache import compile_cache
    from arnpg.cli.patience import patient
    from arnpg.runs.progress import Progress
    from arnpg.training import carry_out

    farewell = f"ended in the middle of a step; `arnpg resume {folder}` goes on from the last checkpoint"
    with patient(farewell), compile_cache(), Progress({plan.method: 1.0}, quiet=quiet) as progress:
        reporter = progress.part(plan.method)
        run = carry_out(plan, folder, resume=resume, reporter=reporter, command=command, parents=True, force=force)
    write(f"{run.summary()}\nwritten {folder}; `arnpg evaluate {folder}` plays fresh episodes\n")
    if run.labels and not run.feasible.all():
        complain(f"{int((~run.feasible).sum())} of {len(run.seeds)} seeds end beyond a limit.")
    return 0


def _settings(groups: list[list[str]] | None) -> dict[str, str]:
    from arnpg.runs.config import parse_overrides

    return parse_overrides([word for group in groups or [] for word in group])
