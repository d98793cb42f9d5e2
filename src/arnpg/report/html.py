"""One HTML page that needs nothing else: no network, no server, no second file.

Texts are escaped wherever they stand, and the page's own policy forbids it to load anything.
"""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from arnpg.report.assets import GUIDE, SCRIPT, STYLE, plotly_source
from arnpg.report.chapter import Chapter, count_claims, verdict
from arnpg.report.figure import Claim, Figure, Table
from arnpg.report.interactive import plots
from arnpg.runs.files import write_atomic

__all__ = ["page", "write_page"]

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
CLASSES = {True: ("holds", "✓"), False: ("fails", "✗"), None: ("open", "?")}

Plots = dict[str, dict[str, Any]]


def write_page(chapters: Sequence[Chapter], path: str | os.PathLike) -> None:
    """Write the page, all or nothing."""
    write_atomic(Path(path), page(chapters).encode("utf-8"))


def page(chapters: Sequence[Chapter]) -> str:
    """The whole page, with a table of contents where there is more than one chapter."""
    stored: Plots = {}
    alone = len(chapters) == 1
    body = ""
    for number, chapter in enumerate(chapters, 1):
        head = "" if alone else f"<h2>{_text(chapter.title)}</h2>"
        body += f'<section id="run-{number}">{head}{_chapter(chapter, f"run-{number}", stored)}</section>\n'
    title = chapters[0].title if alone else f"{len(chapters)} runs"
    data = json.dumps(stored, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    scripts = f"<script>{plotly_source()}</script>\n<script>{SCRIPT}</script>" if stored else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)} · arnpg</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{_text(title)}</h1>\n{_opening(chapters)}\n{body}\n"
        f'<script type="application/json" id="plots">{data}</script>\n{scripts}\n</body>\n</html>\n'
    )


def _opening(chapters: Sequence[Chapter]) -> str:
    """What this is, how to read it, and where what is."""
    from arnpg import __version__

    parts = [f'<p class="quiet">Written by arnpg {_text(__version__)}.</p>']
    parts += ["<noscript><p>The figures need JavaScript; the claims and tables do not.</p></noscript>"]
    if any(chapter.claims for chapter in chapters):
        parts.append(f"<p>{_text(GUIDE)}</p>")
    if len(chapters) > 1:
        lines = []
        for number, chapter in enumerate(chapters, 1):
            count = count_claims(chapter.claims) if chapter.claims else chapter.state
            link = f'<a href="#run-{number}">{_text(chapter.title)}</a>'
            lines.append(f"<li>{link}: {_text(chapter.about)} ({_ticks(count)})</li>")
        parts.append(f"<nav><h3>Contents</h3><ul>{''.join(lines)}</ul></nav>")
    return "\n".join(parts)


def _chapter(chapter: Chapter, anchor: str, stored: Plots) -> str:
    parts = [f"<p><strong>{_text(_sentence(chapter.about))}</strong> {_ticks(_sentence(chapter.state))}</p>"]
    if chapter.summary:
        parts.append(f"<p>{_text(chapter.summary)}</p>")
    if chapter.claims:
        parts += [f"<h3>{_text(count_claims(chapter.claims))}</h3>", _claims(chapter.claims)]
    if chapter.figures:
        parts.append("<h3>Figures</h3>")
        parts += [_figure(figure, f"{anchor}-figure-{at}", stored) for at, figure in enumerate(chapter.figures, 1)]
    for table in chapter.tables:
        parts += [f"<h3>{_text(table.title)}</h3>", _table(table)]
    if chapter.settings:
        rows = [f"<tr>{_cells((setting.name, setting.value, setting.meaning))}</tr>" for setting in chapter.settings]
        parts += ["<h3>Settings</h3>", _grid(("setting", "value", "meaning"), rows, "settings")]
    if chapter.facts:
        parts += ["<h3>How it was run</h3>", _facts(chapter.facts)]
    return "\n".join(parts)


def _claims(claims: Iterable[Claim]) -> str:
    rows = []
    for claim in claims:
        kind, sign = CLASSES[claim.holds]
        word = f'<td class="verdict {kind}">{sign} {_text(verdict(claim.holds))}</td>'
        rows.append(f"<tr>{word}{_cells([claim.text, claim.measured, claim.place])}</tr>")
    return _grid(("verdict", "claim", "measured", "where"), rows, "claims")


def _figure(figure: Figure, anchor: str, stored: Plots) -> str:
    """Places for the panels; what goes there is collected in ``stored``."""
    divisions = []
    for number, (plot, panel) in enumerate(zip(plots(figure), figure.panels, strict=True), 1):
        stored[f"{anchor}-{number}"] = plot
        label = html.escape(f"{panel.title}: {panel.y_label} against {panel.x_label}", quote=True)
        divisions.append(f'<div class="plot" id="{anchor}-{number}" role="img" aria-label="{label}"></div>')
    place = f" ({figure.place})" if figure.place else ""
    caption = f"<figcaption>{_text(figure.title + place)}</figcaption>"
    return f'<figure>{caption}<div class="panels">{"".join(divisions)}</div></figure>'


def _table(table: Table) -> str:
    return _grid(table.columns, [f"<tr>{_cells(row)}</tr>" for row in table.rows])


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    code = ("command", "folder", "file", "configuration")
    cells = [(label, f"<code>{_text(text)}</code>" if label in code else _text(text)) for label, text in facts]
    return _grid((), [f"<tr><th>{_text(label)}</th><td>{text}</td></tr>" for label, text in cells])


def _grid(columns: Iterable[str], rows: Sequence[str], kind: str = "") -> str:
    heads = "".join(f"<th>{_text(column)}</th>" for column in columns)
    head = f"<thead><tr>{heads}</tr></thead>" if heads else ""
    name = f' class="{kind}"' if kind else ""
    return f'<div class="scroll"><table{name}>{head}<tbody>{"".join(rows)}</tbody></table></div>'


def _cells(row: Iterable[str]) -> str:
    return "".join(f"<td>{_text(cell)}</td>" for cell in row)


def _ticks(text: str) -> str:
    """What stands between backticks is code."""
    parts = text.split("`")
    return "".join(f"<code>{_text(part)}</code>" if at % 2 else _text(part) for at, part in enumerate(parts))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _text(text: str) -> str:
    return html.escape(text, quote=False)
