"""Every Python block of the README and the docs runs; every ``arnpg`` line in them does what it says."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from arnpg.cli import COMMANDS, main

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#]+)(#[^)]*)?\)")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.S | re.M)


def commands(page: Path) -> list[list[str]]:
    lines = "\n".join(blocks(page, "console")).splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("arnpg ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # Dataclasses and jaxtyping look their module up by name.
    module = type(sys)(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for number, block in enumerate(blocks(page, "python")):
        exec(compile(block, f"{page.name}, block {number + 1}", "exec"), module.__dict__)
    for arguments in commands(page):
        assert main(arguments) == 0, f"arnpg {' '.join(arguments)}: {capsys.readouterr().err}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_command_is_in_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"arnpg {name}" in text or f"make {name}" in text


def test_every_public_name_is_documented():
    import arnpg

    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    missing = [n for n in arnpg.__all__ if f"arnpg.{n}" not in text and not n.endswith("Error")]
    assert not missing, f"docs/api.md leaves out {missing}"


def test_no_path_of_a_machine_is_left_in_a_page():
    for page in PAGES:
        assert not re.search(r"/(home|root|Users|work|tmp)/", page.read_text(encoding="utf-8")), page.name
