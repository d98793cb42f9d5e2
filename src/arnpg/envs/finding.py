"""What a check found."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Finding", "failed", "fine", "note"]


class Finding(NamedTuple):
    """One line of a report.

    Attributes:
        check: what was looked at.
        holds: whether it is as it must be; none for what is only worth knowing.
        text: what was seen, and where it fails the cure.
    """

    check: str
    holds: bool | None
    text: str


def fine(check: str, text: str) -> Finding:
    """As it must be."""
    return Finding(check, True, text)


def note(check: str, text: str) -> Finding:
    """Worth knowing."""
    return Finding(check, None, text)


def failed(check: str, text: str) -> Finding:
    """Must be mended before training."""
    return Finding(check, False, text)
