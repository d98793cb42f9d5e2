"""Flags: argparse without abbreviations, with suggestions for mistyped flags, and ``name=value`` pairs.

argparse and not tyro here: it starts in 30 ms, and limits such as ``--at-least battery=3 --at-least speed=1`` add up.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

__all__ = ["Parser", "UsageError", "did_you_mean", "number", "pairs", "whole"]


class UsageError(Exception):
    """A command line that cannot be understood."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises ``UsageError`` and says what was perhaps meant."""

    def __init__(self, **keywords: Any) -> None:
        """Keep the layout of the texts, refuse abbreviations."""
        shape = lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=30)  # noqa: E731
        super().__init__(formatter_class=shape, allow_abbrev=False, **keywords)

    def error(self, message: str) -> NoReturn:
        """Raise instead of exiting."""
        raise UsageError(message)

    def read(self, argv: Sequence[str]) -> argparse.Namespace | None:
        """The arguments, or none where the help was asked for and printed."""
        from arnpg.cli.terminal import write

        if "-h" in argv or "--help" in argv:
            write(self.format_help())
            return None
        known, unknown = self.parse_known_args(list(argv))
        for word in unknown:
            if word.startswith("-"):
                flag = word.partition("=")[0]
                raise UsageError(f"{flag} is not a flag{did_you_mean(flag, self._option_string_actions)}")
        if unknown:
            raise UsageError(f"unexpected argument {unknown[0]!r}.")
        return known


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; perhaps you meant 'solve'?``, or a full stop where nothing is close."""
    near = difflib.get_close_matches(word, list(known), n=2, cutoff=0.55)
    return f"; perhaps you meant {' or '.join(near)}?" if near else "."


def pairs(flag: str, groups: Sequence[Sequence[str]] | None, default: float | None = None) -> dict[str, float]:
    """``[["a=1", "b=2"], ["c=3"]]`` as a mapping; a bare name has the ``default``, where there is one."""
    found: dict[str, float] = {}
    for word in [word for group in groups or [] for word in group]:
        name, equals, text = word.rpartition("=")
        if not equals and default is not None:
            name, value = word, default
        elif not name:
            raise UsageError(f"{flag} takes name=value, such as {flag} battery=3.0, got {word!r}.")
        else:
            value = number(f"{flag} {name}", text)
        if name in found:
            raise UsageError(f"{flag} gives {name!r} twice; keep one.")
        found[name] = value
    return found


def number(what: str, text: str) -> float:
    """A float, or a sentence that says which text is not one."""
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{what} must be a number, got {text!r}.") from None


def whole(flag: str, text: str, least: int = 0) -> int:
    """A whole number, or a sentence that says which text is not one."""
    sign, digits = text[:1] in ("+", "-"), text.lstrip("+-")
    if not digits.isdecimal() or len(text) > len(digits) + sign:
        raise UsageError(f"{flag} must be a whole number, got {text!r}.")
    if int(text) < least:
        raise UsageError(f"{flag} must be a whole number >= {least}, got {text!r}.")
    return int(text)
