"""What an experiment found, on a terminal: claims with their verdicts, tables, and where the files are."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from arnpg.cli.terminal import Section, show, text_width, write
from arnpg.report.chapter import count_claims

if TYPE_CHECKING:
    from arnpg.cli.reproduction import Outcome
    from arnpg.report.figure import Claim

__all__ = ["show_outcome"]

WORDS = {True: "holds", False: "does NOT hold", None: "undecided"}
MARGIN = max(map(len, WORDS.values())) + 2


def show_outcome(outcome: Outcome) -> None:
    """Print all of it; a claim that does not hold is said plainly, and is no error."""
    from arnpg.runs.progress import duration

    report = outcome.report
    state = f"finished in {duration(outcome.seconds)}" if outcome.fresh else "was finished before; nothing was computed"
    lines = [f"{report.experiment}: {state}", "", *_wrapped(report.summary), "", f"{count_claims(report.claims)}:"]
    for claim in report.claims:
        lines += _claim(claim)
    write("\n".join(lines) + "\n\n")
    show([Section(table.title, table.rows, table.columns) for table in report.tables])
    if any(claim.holds is False for claim in report.claims):
        write("\nA claim that does not hold is a finding, not a failure of the run.\n")
    files = [f"written {outcome.folder}", f"`arnpg report {outcome.folder}` makes one page of it"]
    write("\n".join([*([outcome.note] if outcome.note else []), *files]) + "\n")


def _claim(claim: Claim) -> list[str]:
    """The verdict in a margin, the claim, then what was measured."""
    first, *rest = _wrapped(f"{claim.text} [{claim.place}]", MARGIN)
    return [f"{WORDS[claim.holds]:<{MARGIN}}{first.lstrip()}", *rest, *_wrapped(claim.measured, MARGIN)]


def _wrapped(text: str, margin: int = 0) -> list[str]:
    width = max(text_width(), margin + 20)
    return textwrap.wrap(text, width, initial_indent=" " * margin, subsequent_indent=" " * margin) or [""]
