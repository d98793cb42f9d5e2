"""Progress: the whole, its remaining time, and streams of every sort."""

import io
import os
import subprocess
import sys

import pytest

from arnpg.runs import progress as module
from arnpg.runs.progress import Progress, duration


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_the_remaining_time_is_that_of_the_whole(clock):
    whole = Progress({"exact": 10, "sampled": 30}, stream=io.StringIO())
    assert whole.remaining() == float("inf")
    whole.part("exact").update(0.0)
    clock[0] += 10
    whole.part("exact").update(1.0)
    assert whole.fraction() == pytest.approx(0.25)
    assert whole.remaining() == pytest.approx(30)


def test_what_was_there_before_is_no_pace(clock):
    whole = Progress({"a": 10, "b": 10}, stream=io.StringIO())
    whole.part("a").update(1.0)
    assert whole.remaining() == float("inf")
    whole.part("b").update(0.5)
    clock[0] += 5
    whole.part("b").update(0.75)
    assert whole.remaining() == pytest.approx(5)


def test_plain_lines_now_and_then(clock):
    stream = io.StringIO()
    with Progress({"exact": 1}, stream=stream) as whole:
        part = whole.part("exact")
        for tick in range(200):
            clock[0] += 0.1
            part.update(tick / 200, f"step {tick}")
        part.say("careful")
    lines = stream.getvalue().splitlines()
    assert 3 <= len(lines) <= 6
    assert "10 %" in lines[0].replace("%", " %")
    assert "19 s left" in lines[0]
    assert "exact  step" in lines[0]
    assert lines[-1] == "careful"


def test_quiet_still_says(clock):
    stream = io.StringIO()
    with Progress({"exact": 1}, stream=stream, quiet=True) as whole:
        clock[0] += 100
        whole.part("exact").update(0.5)
        whole.part("exact").say("damaged")
    assert stream.getvalue() == "damaged\n"


@pytest.mark.parametrize(("name", "value", "colour"), [("TERM", "xterm-256color", True), ("NO_COLOR", "1", False)])
def test_a_bar_on_a_terminal(clock, monkeypatch, name, value, colour):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(name, value)
    stream = Terminal()
    with Progress({"exact": 1}, stream=stream) as whole:
        whole.part("exact").update(0.0)
        clock[0] += 20
        whole.part("exact").update(0.25, "[bold]step 5")
        whole.part("exact").say("[red]careful")
    assert "25%" in stream.getvalue()
    assert "1 min 00 s left" in stream.getvalue()
    assert "[red]careful" in stream.getvalue()
    assert ("\x1b[3" in stream.getvalue()) == colour


def test_a_dumb_terminal_gets_lines(clock, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    with Progress({"exact": 1}, stream=stream) as whole:
        clock[0] += 20
        whole.part("exact").update(0.25)
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().startswith(" 25%")


@pytest.mark.parametrize("terminal", [False, True])
def test_a_closed_stream_is_no_error(clock, monkeypatch, terminal):
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal() if terminal else io.StringIO()
    whole = Progress({"exact": 1}, stream=stream)
    stream.close()
    clock[0] += 20
    whole.part("exact").update(0.25)
    whole.part("exact").say("x")
    whole.close()


def test_a_stream_that_closes_under_a_bar(clock, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with Progress({"exact": 1}, stream=stream) as whole:
        whole.part("exact").update(0.1)
        stream.close()
        clock[0] += 20
        whole.part("exact").update(0.25)
        whole.part("exact").say("x")


@pytest.mark.parametrize("how", ["2>&-", "2>/dev/full", "2> >(true)"])
def test_standard_error_closed_full_or_gone(how):
    code = (
        "import time; from arnpg.runs import progress as m; m.PLAIN_AFTER = m.PLAIN_EVERY = 0\n"
        "with m.Progress({'a': 1}) as whole:\n"
        "    for i in range(50): whole.part('a').update(i / 50); time.sleep(.002)\n"
        "print('fine')"
    )
    ran = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "$CODE" {how}'],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "CODE": code},
    )
    assert ran.stdout == "fine\n"


def test_durations():
    assert [duration(s) for s in (0, 12.4, 60, 200, 3600, 7500, float("inf"), float("nan"))] == [
        "0 s", "12 s", "1 min 00 s", "3 min 20 s", "1 h 00 min", "2 h 05 min", "?", "?",
    ]  # fmt: skip
