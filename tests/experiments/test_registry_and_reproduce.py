"""Every experiment by its command: quickly, interrupted, listed, mistyped."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import arnpg.experiments.registry as registry
from arnpg.cli import main
from arnpg.cli.reproduction import meanings
from arnpg.experiments.experiment import AbstractExperiment
from arnpg.report.figure import Claim, Figure, Panel, Report, Series, Table
from arnpg.report.stored import read_report

HERE = Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Tiny(AbstractExperiment):
    """Sums.

    Attributes:
        steps: how many; the paper
            says ``3``.
        sizes: of each.
        wait: seconds a stage.
    """

    name = "tiny"
    place = "nowhere"
    about = "sums"

    steps: int = 3
    sizes: tuple[float, ...] = (0.5, 1.0)
    wait: float = 0.0

    def stages(self):
        return ("one", "two", "three")

    def run(self, stages):
        total = 0.0
        for name in self.stages():
            total += stages.stage(name, lambda n=name: self._compute(n))["sum"]
        line = Series("sum", (1.0, 2.0, 3.0), (1.0, 2.0, float(total)))
        figure = Figure("tiny sums", "Sums", "", (Panel("sums", "steps", "sum", (line,)),))
        claims = (Claim("sums are positive", "nowhere", f"{total:g}", True), Claim("one is two", "nowhere", "1", False))
        return Report("tiny", "Sums of sizes.", (figure,), claims, (Table("Sums", ("what", "sum"), (("all", "9"),)),))

    def quick(self):
        return dataclasses.replace(self, steps=1, sizes=(2.0,))

    def _compute(self, name):
        os.write(2, f"computing {name}\n".encode())
        time.sleep(self.wait)
        return {"sum": np.array(self.steps * sum(self.sizes))}


@pytest.fixture
def tiny(tmp_path, monkeypatch, capfd):
    """``arnpg`` in a folder of its own, where there is one more experiment."""
    entry = registry.Entry(f"{__name__}:Tiny", "nowhere", "sums", 1, 1)
    monkeypatch.setitem(registry.EXPERIMENTS, "tiny", entry)
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Tiny.__module__])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def run(*words):
        code = main(list(words))
        return code, *capfd.readouterr()

    return run


@pytest.mark.parametrize("name", registry.EXPERIMENTS)
def test_the_list_says_what_the_class_says(name):
    kind, entry = registry.load(name), registry.EXPERIMENTS[name]
    assert (kind.name, kind.place, kind.about) == (name, entry.place, entry.about)
    assert set(meanings(kind)) == {field.name for field in dataclasses.fields(kind)}
    for experiment in (kind(), kind().quick()):
        stages = experiment.stages()
        assert len(set(stages)) == len(stages)
        assert not any("/" in stage for stage in stages)


def test_the_list_is_there_at_once():
    code = "from arnpg.cli import main; import sys; main(['reproduce', '--list']); assert 'jax' not in sys.modules"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    for name, entry in registry.EXPERIMENTS.items():
        assert name in found.stdout
        assert entry.place in found.stdout


def test_a_run_from_the_beginning_to_its_folder(tiny):
    code, out, err = tiny("reproduce", "tiny")
    assert code == 0
    assert err.count("computing") == 3
    for words in (
        "1 of 2 claims hold, 1 does not",
        "does NOT hold",
        "is a finding",
        "written runs/tiny",
        "Sums of sizes",
    ):
        assert words in out, words
    folder = Path("runs/tiny")
    assert {path.name for path in (folder / "plots").iterdir()} == {"tiny-sums.png", "tiny-sums.svg"}
    assert (folder / "plots" / "tiny-sums.png").read_bytes().startswith(b"\x89PNG")
    summary = json.loads((folder / "summary.json").read_text())
    assert [claim["verdict"] for claim in summary["claims"]] == ["holds", "does not hold"]
    assert summary["settings"] == {
        "steps": "how many; the paper says 3.",
        "sizes": "of each.",
        "wait": "seconds a stage.",
    }
    assert list(summary["stages"]) == ["one", "two", "three", "models, report, pictures"]
    assert 0 < summary["stages"]["models, report, pictures"] <= summary["seconds"] < 60
    config = json.loads((folder / "config.json").read_text())
    assert config["command"] == ["arnpg", "reproduce", "tiny"]


def test_a_finished_folder_is_reported_and_another_configuration_refused(tiny):
    tiny("reproduce", "tiny")
    before = {path: path.read_bytes() for path in Path("runs").rglob("*") if path.is_file()}
    code, out, err = tiny("reproduce", "tiny")
    assert code == 0
    assert "nothing was computed" in out
    assert "does NOT hold" in out
    assert "computing" not in err
    assert {path: path.read_bytes() for path in Path("runs").rglob("*") if path.is_file()} == before
    code, _, err = tiny("reproduce", "tiny", "--set", "steps=4")
    assert code == 5
    assert "another configuration" in err
    assert tiny("resume", "runs/tiny")[0] == 0


def test_settings_from_words_files_and_quick(tiny):
    Path("s.toml").write_text("steps = 7\nsizes = [1, 2]\n")
    assert tiny("reproduce", "tiny", "--quick", "--config", "s.toml", "--set", "steps=5", "wait=0.01")[0] == 0
    config = json.loads(Path("runs/tiny-quick/config.json").read_text())["config"]
    assert config == {"experiment": "tiny", "settings": {"steps": 5, "sizes": [1.0, 2.0], "wait": 0.01}}
    assert tiny("reproduce", "tiny", "--quick", "--out", "other")[0] == 0
    assert json.loads(Path("other/tiny-quick/config.json").read_text())["config"]["settings"]["sizes"] == [2.0]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["tabular-cdmp"], 2, "perhaps you meant tabular-cmdp"),
        (["tabular_sumlog"], 2, "perhaps you meant tabular-sumlog"),
        (["xxxx"], 2, "--list"),
        ([], 2, "which experiment"),
        (["--all", "tiny"], 2, "not both"),
        (["tiny", "--set", "step=3"], 2, "step is not a setting; perhaps you meant steps"),
        (["tiny", "--set", "steps=x"], 2, "steps must be a whole number, got 'x'"),
        (["tiny", "--set", "steps"], 2, "key=value"),
        (["tiny", "--set", "sizes=3"], 2, "sizes must be a list"),
        (["tiny", "--set", "steps=0"], 2, "steps must be >= 1, got 0"),
        (["tabular-cmdp", "--set", "step_sizes=[]"], 2, "step_sizes must hold at least one entry"),
        (["tiny", "--config", "none.toml"], 2, "none.toml cannot be read"),
        (["tiny", "--out", "no/such"], 5, "its parent folder does not exist"),
        (["tiny", "--quik"], 2, "perhaps you meant --quick"),
    ],
)
def test_refusals(tiny, words, code, message):
    found, _, err = tiny("reproduce", *words)
    assert found == code
    assert message in err
    assert not Path("runs").exists()


def test_a_damaged_stage_is_computed_again(tiny):
    tiny("reproduce", "tiny")
    right = Path("runs/tiny/report.json").read_bytes()
    Path("runs/tiny/summary.json").unlink()
    stage = Path("runs/tiny/stages/two.npz")
    data = bytearray(stage.read_bytes())
    data[len(data) // 2] ^= 1
    stage.write_bytes(data)
    code, _, err = tiny("resume", "runs/tiny")
    assert code == 0
    assert re.findall("computing (.*)", err) == ["two"]
    assert "is damaged" in err
    assert Path("runs/tiny/report.json").read_bytes() == right


def test_a_folder_in_use_and_one_that_cannot_be_cached(tiny, tmp_path):
    from arnpg.runs.folder import RunFolder

    Path("runs").mkdir()
    (tmp_path / "cache").write_text("a file is in the way")
    config = {"experiment": "tiny", "settings": dataclasses.asdict(Tiny())}
    with RunFolder.create("runs/tiny", "reproduce", config):
        code, _, err = tiny("reproduce", "tiny")
    assert code == 5
    assert f"in use by process {os.getpid()}" in err
    code, _, err = tiny("reproduce", "tiny")
    assert code == 0
    assert "compiled code is not kept" in err


def test_the_user_s_jax_is_as_before(tiny):
    import jax

    before = dict(jax.config.values)
    tiny("reproduce", "tiny")
    assert dict(jax.config.values) == before


CHILD = """
import sys
sys.path[:0] = [{here!r}]
import arnpg.experiments.registry as registry
import test_registry_and_reproduce as me
registry.EXPERIMENTS["tiny"] = registry.Entry("test_registry_and_reproduce:Tiny", "nowhere", "sums", 1, 1)
if {stuck!r}:
    import ctypes
    me.time.sleep = lambda seconds: ctypes.PyDLL(None).usleep(0) or ctypes.CDLL(None).sleep(30)
from arnpg.cli import main
sys.exit(main(sys.argv[1:]))
"""


def start(folder, *words, stuck=False):
    code = CHILD.format(here=str(HERE), stuck=stuck)
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.Popen(
        [sys.executable, "-c", code, *words], cwd=folder, env=environment, stderr=subprocess.PIPE, encoding="utf-8"
    )


def end(process):
    """Its exit code and the rest of what it said."""
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def read_until(process, text):
    lines = []
    while text not in (line := process.stderr.readline()):
        assert line, "".join(lines)
        lines.append(line)


def test_killed_and_continued(tmp_path):
    """SIGKILL in two stages, continued by either command; report and pictures are those of an undisturbed run."""
    words = ("reproduce", "tiny", "--set", "wait=0.3")
    assert end(start(tmp_path, *words, "--out", "whole"))[0] == 0
    for stage in ("one", "two"):
        process = start(tmp_path, *words)
        read_until(process, f"computing {stage}")
        process.kill()
        assert end(process)[0] == -signal.SIGKILL
    code, errors = end(start(tmp_path, "resume", "runs/tiny"))
    assert code == 0, errors
    assert re.findall("computing (.*)", errors) == ["two", "three"]
    for name in ("report.json", "plots/tiny-sums.png", "plots/tiny-sums.svg"):
        assert (tmp_path / "runs/tiny" / name).read_bytes() == (tmp_path / "whole/tiny" / name).read_bytes()


@pytest.mark.parametrize("stuck", [False, True], ids=["python", "compiled code that does not listen"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_answered(tmp_path, number, stuck):
    process = start(tmp_path, "reproduce", "tiny", "--set", "wait=30", stuck=stuck)
    read_until(process, "computing one")
    time.sleep(0.2)
    began = time.monotonic()
    process.send_signal(number)
    code, errors = end(process)
    assert time.monotonic() - began < 2.0
    assert code == 128 + number
    assert "are kept" in errors
    assert "Traceback" not in errors


@pytest.mark.slow
def test_all_of_them_quickly(tmp_path, monkeypatch, capsys):
    """Every experiment, as the command runs it; a real one, interrupted, has the same report."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(["reproduce", "--all", "--quick"]) == 0
    out = capsys.readouterr().out
    for name in registry.EXPERIMENTS:
        folder = tmp_path / "runs" / f"{name}-quick"
        report = read_report(folder / "report.json")
        assert report.claims
        assert len(list((folder / "plots").glob("*.png"))) == len(report.figures) > 0
        assert f"written runs/{folder.name}" in out
    right = (folder / "report.json").read_bytes()
    (folder / "summary.json").unlink()
    (folder / "report.json").unlink()
    (sorted((folder / "stages").iterdir())[0]).unlink()
    assert main(["resume", str(folder)]) == 0
    assert (folder / "report.json").read_bytes() == right
