"""``arnpg report RUN...``: one HTML page of runs and solutions, to open from the file system."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from arnpg.cli.parser import Parser, UsageError
from arnpg.cli.terminal import complain, write

if TYPE_CHECKING:
    from arnpg.report.chapter import Chapter

__all__ = ["main"]

EXAMPLES = """\
The page holds everything: figures to hover and zoom, claims, tables, settings, versions, times. It needs no network and
no other file. A run that is not finished yet is shown as far as it is.

examples:
  arnpg report runs/tabular-cmdp
  arnpg report runs/tabular-* --out all.html --open
  arnpg report solution.npz
"""

ENDINGS = (".html", ".htm")


def main(argv: list[str]) -> int:
    """Write the page."""
    parser = Parser(
        prog="arnpg report",
        usage="arnpg report RUN... [--out PAGE.html] [--open]",
        description="Write one HTML page of runs (their folders) and of solutions (.npz).",
        epilog=EXAMPLES,
    )
    parser.add_argument("runs", nargs="*", metavar="RUN", help="the folder of a run, or a solution file")
    parser.add_argument("--out", metavar="PAGE.html", help="default: report.html, in the folder where it is one run")
    parser.add_argument("--open", action="store_true", help="open it in the browser")
    given = parser.read(argv)
    if given is None:
        return 0
    if not given.runs:
        raise UsageError("which runs? Give the path of a run's folder, or of a solution file.")
    target = _target(given.out, given.runs)
    from arnpg.report.html import write_page

    write_page([_chapter(path) for path in dict.fromkeys(given.runs)], target)
    write(f"written {target}\n")
    if given.open:
        _open(target)
    return 0


def _target(out: str | None, runs: list[str]) -> Path:
    if out is not None:
        if not out.lower().endswith(ENDINGS):
            raise UsageError(f"--out must end with .html, got {out!r}.")
        return Path(out)
    alone = len(set(runs)) == 1 and Path(runs[0]).is_dir()
    return (Path(runs[0]) if alone else Path()) / "report.html"


def _chapter(path: str) -> Chapter:
    if Path(path).is_dir() or not path.endswith(".npz"):
        from arnpg.report.run_chapter import run_chapter

        return run_chapter(path)
    from arnpg.files import load
    from arnpg.report.solution_chapter import solution_chapter
    from arnpg.report.trained_chapter import trained_chapter
    from arnpg.trained import TrainedRun

    return trained_chapter(path) if isinstance(load(path), TrainedRun) else solution_chapter(path)


def _open(target: Path) -> None:
    import webbrowser

    if not webbrowser.open(target.resolve().as_uri()):
        complain(f"no browser could be started; open {target} by hand.")
