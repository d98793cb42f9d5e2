"""``arnpg resume RUN``: continue what was interrupted, whatever kind of run it is."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from arnpg.cli.parser import Parser, UsageError
from arnpg.cli.terminal import write

if TYPE_CHECKING:
    from arnpg.runs.folder import RunFolder

__all__ = ["CONTINUATIONS", "main", "register"]

EXAMPLES = """\
A run that was interrupted, killed, or lost its machine goes on from its last checkpoint; its result is the same, bit
for bit. A finished run is left as it is.

examples:
  arnpg resume runs/tabular-cmdp
  arnpg resume runs/tabular-cmdp --auto
  arnpg resume runs/hopper --force       (MuJoCo, say, has another version now)
"""

Continue = Callable[..., int]

# Kind of run, as its config.json says, and the function that continues it as "module:function":
# function(folder, *, resume, quiet) -> exit code, with the folder locked and resume "strict" or "auto"; force=True is
# given as well where --force is.
CONTINUATIONS: dict[str, str | Continue] = {
    "reproduce": "arnpg.cli.reproduce:resume",
    "train": "arnpg.cli.train:resume",
}


def register(kind: str, target: str | Continue) -> None:
    """State what continues runs of this ``kind``: a function, or ``module:function`` to import it when needed."""
    CONTINUATIONS[kind] = target


def main(argv: list[str]) -> int:
    """Continue the run; 0 where it is finished now."""
    parser = Parser(
        prog="arnpg resume",
        usage="arnpg resume RUN [--auto] [--force]",
        description="Continue an interrupted run.",
        epilog=EXAMPLES,
    )
    parser.add_argument("run", nargs="?", metavar="RUN", help="the folder of the run")
    parser.add_argument("--auto", action="store_true", help="if the last checkpoint is damaged, use the one before it")
    parser.add_argument("--force", action="store_true", help="go on although the environment has other versions now")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    given = parser.read(argv)
    if given is None:
        return 0
    if given.run is None:
        raise UsageError("which run? Give the path of its folder.")
    from arnpg.runs.folder import RunFolder

    folder = RunFolder.open(given.run)
    if folder.finished:
        write(f"{folder.path} is finished; there is nothing to resume.\n")
        return 0
    function = _function(folder)
    folder.lock()
    with folder:
        more = {"force": True} if given.force else {}
        return function(folder, resume="auto" if given.auto else "strict", quiet=given.quiet, **more)


def _function(folder: RunFolder) -> Continue:
    target = CONTINUATIONS.get(folder.kind)
    if target is None:
        raise UsageError(
            f"{folder.path} is a run of kind {folder.kind!r}, and no command continues it; run the program again "
            "that began it."
        )
    if callable(target):
        return target
    module, _, name = target.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise UsageError(f"this arnpg has no {module}, which continues runs of kind {folder.kind!r}.") from error
