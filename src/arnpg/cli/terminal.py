"""What a command writes: tables on standard output, progress and complaints on standard error.

Nothing here fails because of where it is written to: a closed pipe, no terminal, 20 columns, ASCII only.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

__all__ = ["ProgressLine", "Section", "complain", "prepare_streams", "show", "text_width", "write"]

FIRST_AFTER = 0.5  # seconds of silence before a progress line appears on a terminal
DUMB = ("dumb", "unknown")
SEPARATOR = 2  # characters between columns
FIGURES = ("", *"0123456789+-.")  # what a number begins with
PLAIN_AFTER, PLAIN_EVERY = 2.0, 5.0  # the same, and the interval, for plain lines


class Section:
    """Rows under a title: a table where there is a header, labels with their texts where there is none."""

    def __init__(self, title: str, rows: Sequence[Sequence[str]], header: Sequence[str] = ()) -> None:
        self.title, self.rows, self.header = title, rows, header


def prepare_streams() -> None:
    """Characters that the terminal does not know are escaped instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def write(text: str) -> None:
    """Write to standard output; a reader that has gone away is no error."""
    _write(sys.stdout, text)


def complain(message: str) -> None:
    """Write an error to standard error."""
    _write(sys.stderr, f"arnpg: {message}\n")


def show(sections: Sequence[Section]) -> None:
    """Print sections as tables fitted to the terminal; plain and unwrapped where there is none."""
    from rich.console import Console
    from rich.text import Text

    terminal = sys.stdout is not None and sys.stdout.isatty()
    plain = not terminal or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in DUMB
    buffer = io.StringIO()
    console = Console(file=buffer, width=_columns(terminal), no_color=plain, force_terminal=not plain)
    for number, section in enumerate(sections):
        if number:
            console.print()
        if section.title:
            console.print(Text(section.title, style="bold", overflow="fold"))
        if section.rows and _fits(section, console.width):
            console.print(_table(section, terminal))
        elif section.rows:
            console.print(_records(section))
    write("\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n")


def _fits(section: Section, columns: int) -> bool:
    """Whether a table would be readable: every number on one line, the first and other texts in their longest word."""
    header, *rest = zip(*(row for row in (section.header, *section.rows) if row), strict=True)
    widths = [_longest_word(header), *(20 if not section.header else _column_width(column) for column in rest)]
    return sum(widths) + SEPARATOR * (len(widths) - 1) <= columns


def _longest_word(cells: Sequence[str]) -> int:
    return max((len(word) for cell in cells for word in str(cell).split()), default=1)


def _column_width(cells: Sequence[str]) -> int:
    """Of a column whose header may be broken at its spaces, and whose cells may not."""
    return max(_longest_word(cells[:1]), *(len(cell) for cell in cells[1:]))


def _records(section: Section) -> Any:
    """One line for each cell, for terminals that are too narrow for a table."""
    from rich.text import Text

    lines = []
    for row in section.rows:
        labels = section.header or row[:1]
        lines += [row[0]] if section.header else []
        lines += [f"  {label} {cell}" for label, cell in zip(labels[-len(row) + 1 :], row[1:], strict=True) if cell]
    return Text("\n".join(lines), overflow="fold")


def _table(section: Section, terminal: bool) -> Any:
    """With a rule on a terminal that can draw one; cells are text, never markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rule = box.SIMPLE if terminal and _is_unicode(sys.stdout) else None
    table = Table(box=rule, show_header=bool(section.header), header_style="bold", show_edge=False)
    table.pad_edge, table.padding = False, (0, SEPARATOR - (rule is not None), 0, 0)
    for index, label in enumerate(section.header or section.rows[0]):
        number = bool(section.header) and index > 0
        broken = "\n".join(label.split()) if number and terminal else label
        right = number and all(row[index].strip()[:1] in FIGURES for row in section.rows)
        table.add_column(Text(broken), overflow="fold", justify="right" if right else "left", no_wrap=number)
    for row in section.rows:
        table.add_row(*(Text(str(cell), overflow="fold") for cell in row))
    return table


class ProgressLine:
    """One line on standard error that is overwritten; plain lines, now and then, without a terminal."""

    def __init__(self, quiet: bool = False) -> None:
        """Stay silent until the work turns out to be long."""
        self._stream = None if quiet else sys.stderr
        self._live = bool(self._stream) and self._stream.isatty() and os.environ.get("TERM") not in DUMB
        self._began = time.monotonic()
        self._next = self._began + (FIRST_AFTER if self._live else PLAIN_AFTER)
        self._shown = False

    def __call__(self, text: Callable[[], str]) -> None:
        """Show ``text()`` if it is time to."""
        now = time.monotonic()
        if self._stream is None or now < self._next:
            return
        self._shown = True
        if self._live:
            self._next = now + 0.1
            _write(self._stream, "\r\x1b[2K" + text()[: max(_columns(True) - 1, 1)])
        else:
            self._next = now + PLAIN_EVERY
            _write(self._stream, text() + "\n")

    def close(self) -> None:
        """Leave a clean line behind."""
        if self._live and self._shown and self._stream is not None:
            _write(self._stream, "\r\x1b[2K")


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        # What is left in the buffer must go somewhere when Python closes the stream.
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, stream.fileno())
        os.close(sink)


def text_width() -> int:
    """Columns for running text: the terminal's, at most 100."""
    return min(_columns(sys.stdout is not None and sys.stdout.isatty()), 100)


def _columns(terminal: bool) -> int:
    if not terminal and not os.environ.get("COLUMNS", "").isdigit():
        return 1000
    return max(shutil.get_terminal_size((80, 24)).columns, 10)


def _is_unicode(stream: TextIO | None) -> bool:
    return (getattr(stream, "encoding", None) or "ascii").lower().startswith("utf")
