"""What a page says about one run or one solution, as plain data."""

from __future__ import annotations

import dataclasses

from arnpg.report.figure import Claim, Figure, Table

__all__ = ["Chapter", "Setting", "count_claims", "verdict"]


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting: its name, its value, and what it means."""

    name: str
    value: str
    meaning: str = ""


@dataclasses.dataclass(frozen=True)
class Chapter:
    """One run or one solution.

    Attributes:
        title: its name.
        about: what it is, in a sentence.
        state: ``finished``, or what is missing.
        summary: what came out, in a paragraph.
        claims: each with the figure measured.
        figures: to hover and zoom.
        tables: the numbers.
        settings: what decided the result.
        facts: labels with texts: command, versions, times.
    """

    title: str
    about: str
    state: str
    summary: str = ""
    claims: tuple[Claim, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    settings: tuple[Setting, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()


def verdict(holds: bool | None) -> str:
    """``holds``, ``does not hold``, or ``undecided``."""
    return "undecided" if holds is None else "holds" if holds else "does not hold"


def count_claims(claims: tuple[Claim, ...]) -> str:
    """``5 of 8 claims hold, 3 do not``."""
    held, failed = (sum(claim.holds is wanted for claim in claims) for wanted in (True, False))
    words = [
        f"{held} of {len(claims)} claims hold",
        *([f"{failed} {'does' if failed == 1 else 'do'} not"] if failed else []),
    ]
    undecided = len(claims) - held - failed
    return ", ".join([*words, *([f"{undecided} undecided"] if undecided else [])])
