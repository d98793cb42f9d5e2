"""``arnpg check-env ENV``: what is wrong with an environment, before any training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from arnpg.cli.host_flags import plain, texts
from arnpg.cli.parser import Parser, UsageError, whole
from arnpg.cli.terminal import Section, complain, show, write
from arnpg.cli.this_folder import see_this_folder

if TYPE_CHECKING:
    from arnpg.envs.finding import Finding

__all__ = ["main"]

EXAMPLES = """\
ENV is an id (Hopper-v5, mo-hopper-v5, CartPole-v1) or module:Class, or module:function that makes one, of your own.
Its folder must be on PYTHONPATH, or be the one you are in.

Looked at: both spaces, shape, dtype and bounds of observations, what reset and step return, numbers that are none, the
length of reward vectors, what an objective needs, the same path under the same seed, episodes that never end or are
over at once, an environment that hangs (--step-timeout) or takes its process with it.

  ok    as it must be
  note  worth knowing
  FAIL  must be mended: training would stop there, or learn something else than you mean

examples:
  arnpg check-env mine:Elevator --time-limit 500
  arnpg check-env CartPole-v1 --steps 10000
  arnpg check-env Hopper-v5 --objectives return=reward speed=info:x_velocity
  arnpg check-env Hopper-v5 --option frame_skip=2
  arnpg check-env mine:Elevator --replay runs/elevator/fault.npz     (does the fault come again?)

exit codes: 0 fit for training, 2 bad input, 4 something must be mended.
"""
FAULTY = 4
WORDS = {True: "ok", None: "note", False: "FAIL"}


def main(argv: list[str]) -> int:
    """Print what was found; 4 where something must be mended."""
    given = _parser().read(argv)
    if given is None:
        return 0
    if given.env is None:
        raise UsageError("which environment? Give an id such as CartPole-v1, or module:Class of your own.")
    see_this_folder()
    options = {name: plain(text) for name, text in texts("--option", given.option).items()}
    limit = None if given.time_limit is None else whole("--time-limit", given.time_limit, 1)
    if given.replay is not None:
        return _replay(given.env, Path(given.replay), options, limit)
    from arnpg.envs.check import check_environment

    found = check_environment(
        given.env,
        texts("--objectives", given.objectives) or None,
        time_limit=limit,
        steps=whole("--steps", given.steps),
        seed=whole("--seed", given.seed),
        options=options,
        step_timeout=_seconds(given.step_timeout),
    )
    return _report(given.env, found)


def _parser() -> Parser:
    parser = Parser(
        prog="arnpg check-env",
        usage="arnpg check-env ENV [options]",
        description="Say whether an environment is fit for training, and what is wrong with it.",
        epilog=EXAMPLES,
    )
    parser.add_argument("env", nargs="?", metavar="ENV", help="an id, or module:Class")
    for flags, kind, meaning in (
        (("--objectives", "--objective"), "NAME=WHAT", "reward, reward[1], info:key (default: what is found)"),
        (("--option",), "NAME=V", "for the constructor"),
    ):
        parser.add_argument(*flags, nargs="+", action="append", metavar=kind, help=meaning)
    parser.add_argument("--time-limit", metavar="T", help="steps after which an episode is truncated")
    parser.add_argument("--steps", metavar="N", default="2000", help="with random actions (default 2000)")
    parser.add_argument("--seed", metavar="S", default="0", help="of starts and actions (default 0)")
    parser.add_argument("--step-timeout", metavar="SEC", default="10", help="a longer step hangs (default 10)")
    parser.add_argument("--replay", metavar="FAULT.npz", help="play a recorded fault again instead")
    return parser


def _report(name: str, found: list[Finding]) -> int:
    rows = [(WORDS[finding.holds], finding.check, finding.text) for finding in found]
    show([Section(f"{name}: an environment", rows, ("", "what", "found"))])
    wrong = sum(finding.holds is False for finding in found)
    if wrong:
        complain(f"{name} is not fit for training: {wrong} of {len(found)} checks failed.")
        return FAULTY
    write(f"\n{name} is fit for training.\n")
    return 0


def _replay(name: str, path: Path, options: dict[str, Any], time_limit: int | None) -> int:
    from arnpg.envs.replay import replay
    from arnpg.runs.fault_file import read_fault

    fault = replay(name, read_fault(path), options=options, time_limit=time_limit)
    if fault is not None:
        complain(f"it comes again: {fault}")
        return FAULTY
    write("It does not come again: the environment is not deterministic under its seed, or has been mended.\n")
    return 0


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--step-timeout must be a number of seconds, got {text!r}.") from None
