"""What "best" means, as flags: ``--maximize``, ``--fair``, ``--max-min``, ``--linear``, and limits on any of them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from arnpg.cli.parser import Parser, UsageError, did_you_mean, number, pairs

if TYPE_CHECKING:
    from arnpg.criteria import AbstractCriterion

__all__ = ["add_criterion_flags", "criterion_words", "make_criterion", "with_discounts"]


def add_criterion_flags(parser: Parser) -> None:
    """The flags of every command that takes a criterion."""
    best = parser.add_argument_group('what "best" means (one of)')
    best.add_argument("--maximize", metavar="NAME", help="the value of one objective")
    best.add_argument("--fair", nargs="*", metavar="NAME[=W]", help="sum of W log value; default: all without a limit")
    best.add_argument("--max-min", nargs="*", metavar="NAME[=C]", help="least value / C; default: all without a limit")
    best.add_argument("--linear", nargs="+", metavar="NAME=W", help="a weighted sum; weights may be negative")
    limits = parser.add_argument_group("limits (any number)")
    limits.add_argument("--at-least", nargs="+", action="append", metavar="NAME=V", help="the value must reach V")
    limits.add_argument("--at-most", nargs="+", action="append", metavar="NAME=V", help="the value must not pass V")
    best.add_argument("--offset", metavar="D", help="with --fair: W log(D + value); needed where values may be 0")


def criterion_words(given: argparse.Namespace) -> dict[str, Any]:
    """The criterion as plain data, complete and without contradictions."""
    flags = ("maximize", "fair", "max_min", "linear")
    chosen = [name for name in flags if getattr(given, name) is not None]
    if len(chosen) != 1:
        said = " and ".join("--" + name.replace("_", "-") for name in chosen) or "none of them"
        raise UsageError(f"give one of --maximize NAME, --fair, --max-min, --linear NAME=W; got {said}.")
    if given.offset is not None and chosen != ["fair"]:
        raise UsageError("--offset goes with --fair only.")
    kind, entries = chosen[0], getattr(given, chosen[0])
    flag = "--" + kind.replace("_", "-")
    if kind != "maximize":
        entries = pairs(flag, [entries], None if kind == "linear" else 1.0)
    limits = {name: pairs("--" + name.replace("_", "-"), getattr(given, name)) for name in ("at_least", "at_most")}
    return {
        "kind": kind,
        "entries": entries,
        "offset": number("--offset", given.offset) if given.offset is not None else 0.0,
        **limits,
    }


def with_discounts(words: dict[str, Any], discounts: dict[str, float]) -> dict[str, Any]:
    """The words with discounts of their limits; one of something without a limit would mean nothing."""
    limits = {**words["at_least"], **words["at_most"]}
    for name in discounts:
        if name not in limits:
            raise UsageError(f"--discounted names {name!r}, which has no limit{did_you_mean(name, limits)}")
    return {**words, "discounted": discounts}


def make_criterion(words: dict[str, Any]) -> AbstractCriterion:
    """The criterion that the words stand for."""
    from arnpg.criteria import Constrained, Linear, MaxMin, ProportionalFair

    kind, entries = words["kind"], words["entries"]
    if kind == "maximize":
        inner: Any = entries
    elif kind == "fair":
        inner = ProportionalFair(entries or None, offset=words["offset"])
    else:
        inner = MaxMin(entries or None) if kind == "max_min" else Linear(entries)
    if kind == "maximize" or words["at_least"] or words["at_most"]:
        limits = {side: _limits(words[side], words.get("discounted", {})) for side in ("at_least", "at_most")}
        return Constrained(maximize=inner, **limits)
    return inner


def _limits(limits: dict[str, float], discounts: dict[str, float]) -> dict[str, Any]:
    from arnpg.criteria import Discounted

    return {name: Discounted(limit, discounts[name]) if name in discounts else limit for name, limit in limits.items()}
