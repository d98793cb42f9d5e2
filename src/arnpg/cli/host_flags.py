"""Flags about an environment of Gymnasium: its objectives, and what it is made and stepped with."""

from __future__ import annotations

import argparse
import json
from typing import Any

from arnpg.cli.parser import Parser, UsageError, whole

__all__ = ["add_host_flags", "host_options", "plain", "texts"]


def add_host_flags(parser: Parser) -> None:
    """The flags of every command that makes an environment."""
    host = parser.add_argument_group("environments of Gymnasium")
    host.add_argument("--objectives", nargs="+", action="append", metavar="NAME=SOURCE", help="reward, info:x, ...")
    host.add_argument("--backend", metavar="B", help="auto (default), envpool or gymnasium")
    host.add_argument("--time-limit", metavar="T", help="steps of an episode, where the environment has no limit")
    host.add_argument("--workers", metavar="N", help="processes for slow environments (default none)")
    host.add_argument("--option", nargs="+", action="append", metavar="NAME=V", help="for the constructor")
    host.add_argument("--on-fault", metavar="F", help="stop (default), or drop the episode in which ENV breaks")


def host_options(given: argparse.Namespace) -> dict[str, Any]:
    """What was given of them; nothing where nothing was."""
    found: dict[str, Any] = {}
    if given.objectives:
        found["objectives"] = texts("--objectives", given.objectives)
    if given.option:
        found["options"] = {name: plain(text) for name, text in texts("--option", given.option).items()}
    for name in ("backend", "on_fault"):
        if getattr(given, name):
            found[name] = getattr(given, name)
    for name in ("time_limit", "workers"):
        if getattr(given, name) is not None:
            found[name] = whole("--" + name.replace("_", "-"), getattr(given, name), int(name == "time_limit"))
    return found


def texts(flag: str, groups: list[list[str]] | None) -> dict[str, str]:
    """``NAME=TEXT`` words as a mapping."""
    found: dict[str, str] = {}
    for word in [word for group in groups or [] for word in group]:
        name, _, text = word.partition("=")
        if not name or not text:
            example = "cost=info:cost" if flag.startswith("--objective") else "size=5"
            raise UsageError(f"{flag} takes NAME=VALUE, such as {example}, got {word!r}.")
        if name in found:
            raise UsageError(f"{flag} gives {name!r} twice; keep one.")
        found[name] = text
    return found


def plain(text: str) -> Any:
    """A number, true, false, null or a list as JSON has it; else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
