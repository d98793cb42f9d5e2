"""The command ``arnpg``: one file for each subcommand, imported only when it is called.

A subcommand is a module of this package with ``main(argv) -> int``. It reads its own flags, so that one may use
``arnpg.cli.parser`` and the next another parser; errors, signals and exit codes are settled here, once:

    0 ok, 2 bad input or configuration, 3 infeasible or not certified, 4 environment fault, 5 storage,
    130 SIGINT, 143 SIGTERM.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from arnpg.cli.parser import UsageError, did_you_mean
from arnpg.cli.terminal import complain, prepare_streams, write

__all__ = ["BAD_INPUT", "COMMANDS", "FAULTY", "NOT_CERTIFIED", "STORAGE", "main"]

BAD_INPUT, NOT_CERTIFIED, FAULTY, STORAGE = 2, 3, 4, 5
SIGNALLED = 128  # and the signal's number

COMMANDS = {
    "solve": "find the best policy of a known model, with a certified gap",
    "describe": "say what is in a model file or a solution file",
    "train": "train neural policies in an environment",
    "evaluate": "play fresh episodes with trained policies",
    "check-env": "say whether an environment of your own, or any other, is fit for training",
    "reproduce": "run the paper's experiments, and measure its claims",
    "resume": "continue an interrupted run",
    "report": "make one HTML page of runs and solutions",
    "demo": "solve two models under three criteria, and draw what is achievable",
}

HELP = """\
usage: arnpg COMMAND [options]

One policy for several objectives: under limits, fair, or max-min, with a proof of how good it is.

commands:
{commands}

examples:
  arnpg demo
  arnpg describe model.npz
  arnpg solve model.npz --maximize throughput --at-least battery=3.0

`arnpg COMMAND --help` explains a command; `arnpg --version` prints the version.
"""


class Terminated(BaseException):
    """SIGTERM arrived."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns the exit code, or ends an interrupted process that is the command itself."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    prepare_streams()
    restore = _listen()
    try:
        code = _guarded(arguments)
    finally:
        restore()
    if argv is None and code > SIGNALLED:
        _leave(code)
    return code


def _leave(code: int) -> None:
    """At once: compiled code may still be running, and taking the interpreter down around it has crashed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        width = max(map(len, COMMANDS))
        write(HELP.format(commands="\n".join(f"  {name:<{width}}  {what}" for name, what in COMMANDS.items())))
        return 0 if arguments else BAD_INPUT
    if arguments[0] == "--version":
        from arnpg import __version__

        write(f"arnpg {__version__}\n")
        return 0
    if arguments[0] not in COMMANDS:
        raise UsageError(f"{arguments[0]!r} is not a command{did_you_mean(arguments[0], COMMANDS)}")
    return importlib.import_module(f"arnpg.cli.{arguments[0].replace('-', '_')}").main(arguments[1:])


def _guarded(arguments: list[str]) -> int:
    """Turn every way in which a command can end into a sentence and an exit code."""
    from arnpg.errors import ArnpgError, EnvironmentFault, StorageError
    from arnpg.storage import reason

    try:
        return _dispatch(arguments)
    except UsageError as error:
        command = f"{arguments[0]} " if arguments[0] in COMMANDS else ""
        complain(f"{error}\nTry `arnpg {command}--help`.")
        return BAD_INPUT
    except StorageError as error:
        complain(str(error))
        return STORAGE
    except EnvironmentFault as error:
        complain(str(error))
        return FAULTY
    except ArnpgError as error:
        complain(str(error))
        return BAD_INPUT
    except MemoryError as error:
        complain(f"this machine's memory is too small: {error}")
        return BAD_INPUT
    except OSError as error:
        complain(f"{error.filename or 'a file'} cannot be used: {reason(error)}.")
        return STORAGE
    except KeyboardInterrupt:
        complain("interrupted; nothing was left half-written")
        return SIGNALLED + signal.SIGINT
    except Terminated:
        complain("terminated; nothing was left half-written")
        return SIGNALLED + signal.SIGTERM


def _listen() -> Callable[[], None]:
    """End cleanly on the first SIGINT or SIGTERM, at once on the second; returns how to put the handlers back."""

    def handle(number: int, frame: Any) -> None:
        del frame
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated

    before: dict[int, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, handle)
    except ValueError:  # not in the main thread: the program around us listens
        before.clear()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    return restore
