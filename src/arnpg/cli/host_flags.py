"""Flags about an environment of Gymnasium: its objectives, and what it is made and stepped with."""

from __future__ import annotations

import argparse
from typing import Any

from arnpg.cli.parser import Parser, UsageError, whole

__all__ = ["add_host_flags", "host_options"]


def add_host_flags(parser: Parser) -> None:
    """The flags of every command that makes an environment."""
    host = parser.add_argument_group("environments of Gymnasium")
    host.add_argument("--objectives", nargs="+", action="append", metavar="NAME=SOURCE", help="reward, info:x, ...")
    host.add_argument("--backend", metavar="B", help="auto (default), envpool or gymnasium")
    host.add_argument("--time-limit", metavar="T", help="steps of an episode, where the environment has no limit")
    host.add_argument("--workers", metavar="N", help="processes for slow environments (default none)")


def host_options(given: argparse.Namespace) -> dict[str, Any]:
    """What was given of them; nothing where nothing was."""
    found: dict[str, Any] = {}
    if given.objectives:
        found["objectives"] = dict(_source(word) for group in given.objectives for word in group)
    if given.backend:
        found["backend"] = given.backend
    for name in ("time_limit", "workers"):
        if getattr(given, name) is not None:
            found[name] = whole("--" + name.replace("_", "-"), getattr(given, name))
    return found


def _source(word: str) -> tuple[str, str]:
    name, _, source = word.partition("=")
    if not name or not source:
        raise UsageError(f"--objectives takes NAME=SOURCE, such as cost=info:cost, got {word!r}.")
    return name, source
