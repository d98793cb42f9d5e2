"""Settings: strict, and every refusal says where."""

import dataclasses
import sys
from typing import Literal

import pytest

from arnpg import SettingsError
from arnpg.runs.config import from_json, load_config, setting, to_json


@dataclasses.dataclass(frozen=True)
class Inner:
    """Nested."""

    step_size: float = setting(1.0, above=0)
    micro_steps: int = setting(1, at_least=1, at_most=100)


@dataclasses.dataclass(frozen=True)
class Settings:
    """One field of each sort."""

    steps: int = setting(300, at_least=1)
    name: str = "paper"
    method: Literal["epd", "imd"] = "epd"
    quick: bool = False
    grid: tuple[float, ...] = setting((0.1, 1.0), above=0)
    pair: tuple[int, str] = (1, "a")
    names: tuple[str, ...] = ("a",)
    limit: float | None = None
    budget: float = setting(float("inf"), above=0, finite=False)
    inner: Inner = dataclasses.field(default_factory=Inner)

    def __post_init__(self):
        """Two settings that exclude each other."""
        if self.quick and self.limit is not None:
            raise SettingsError("quick and limit exclude each other; give one.")


@pytest.fixture
def toml(tmp_path):
    def write(content):
        path = tmp_path / "settings.toml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_file_then_words(toml):
    path = toml("steps = 10\ngrid = [1, 0.5]\nbudget = inf\n[inner]\nstep_size = 2\n")
    found = load_config(Settings, path, ["inner.micro_steps=3", "name=12", "limit=.5", "method=imd", "grid=[3]"])
    inner = Inner(step_size=2.0, micro_steps=3)
    assert found == Settings(10, "12", "imd", grid=(3.0,), limit=0.5, inner=inner)
    assert isinstance(found.inner.step_size, float)
    assert load_config(Settings, overrides=['names=["b", "c"]']).names == ("b", "c")
    assert load_config(Settings) == Settings()
    assert load_config(Settings, toml("limit = 1.0"), ["limit=none", 'name="a b"', "steps = 7"]).limit is None


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfsteps = 10\n", b"steps = 10\r\nname = 'x'\r\n", b"steps = 10"])
def test_marks_and_line_ends_are_fine(toml, content):
    assert load_config(Settings, toml(content)).steps == 10


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("stepz = 10", r"settings\.toml: stepz is not a setting; perhaps you meant steps\?"),
        ("[inner]\nstep_sise = 1.0", r"settings\.toml: inner\.step_sise is not a setting; perhaps you meant step_size"),
        ("steps = 1.5", r"steps must be a whole number, got 1\.5"),
        ("steps = true", "steps must be a whole number, got True"),
        ("steps = '10'", "steps must be a whole number, got '10'"),
        ("steps = 0", "steps must be >= 1, got 0"),
        ("quick = 1", "quick must be true or false, got 1"),
        ("name = 3", "name must be text, got 3"),
        ("method = 'epdd'", "method must be one of epd, imd, got 'epdd'; perhaps you meant epd"),
        ("grid = 3.0", r"grid must be a list, got 3\.0"),
        ("grid = [1.0, -1.0]", r"grid must be > 0, got -1\.0"),
        ("grid = [1.0, 'a']", r"grid\[1\] must be a number, got 'a'"),
        ("pair = [1]", "pair must have 2 entries, got 1"),
        ("limit = 'a'", "limit must be a number, got 'a'"),
        ("limit = nan", "limit must be a finite number, got nan"),
        ("limit = inf", "limit must be a finite number, got inf"),
        ("inner = 3", "inner must be a table of settings, got 3"),
        ("[inner]\nmicro_steps = 101", r"inner\.micro_steps must be <= 100, got 101"),
        ("quick = true\nlimit = 1.0", r"settings\.toml: quick and limit exclude each other"),
        ("steps = 1\nsteps = 2", "not valid TOML: .*a key is given twice, keep one"),
        ("steps = ", "not valid TOML"),
        ("x = " + "[" * 100_000, "not valid TOML"),
        ("", "holds no settings"),
        ("# nothing\n", "holds no settings"),
        (b"name = '\xff'", "not UTF-8 text"),
        ("steps = 10".encode("utf-16"), "not UTF-8 text"),
        ("a" * (2**20 + 1), "has 1048577 bytes; a file of settings has at most 1048576"),
        ("name = !!python/object/apply:os.system ['x']", "not valid TOML"),
    ],
)
def test_files_that_are_refused(toml, content, message):
    with pytest.raises(SettingsError, match=message):
        load_config(Settings, toml(content))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["steps"], "given as key=value, such as steps=100, got 'steps'"),
        (["=3"], "given as key=value"),
        (["steps=1", "steps=2"], "steps is given twice"),
        (["stpes=1"], "stpes is not a setting; perhaps you meant steps"),
        (["iner.step_size=1"], r"iner\.step_size is not a setting; perhaps you meant inner"),
        (["steps.x=1"], r"steps\.x is not a setting"),
        (["inner.x=1"], r"inner\.x is not a setting"),
        (["steps=ten"], "steps must be a whole number, got 'ten'"),
        (["steps=1e3"], r"steps must be a whole number, got 1000\.0"),
        (["inner.step_size=-1"], r"inner\.step_size must be > 0, got -1\.0"),
        (["method=__import__('os')"], "method must be one of"),
    ],
)
def test_words_that_are_refused(words, message):
    with pytest.raises(SettingsError, match=message):
        load_config(Settings, overrides=words)


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(SettingsError, match="is a folder"):
        load_config(Settings, tmp_path)
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        load_config(Settings, tmp_path / "none.toml")
    with pytest.raises(SettingsError, match="cannot be read"):
        load_config(Settings, tmp_path / ("a" * 300))


def test_json_round_trip():
    config = Settings(limit=0.1 + 0.2, grid=(1e-300,), inner=Inner(step_size=1 / 3))
    assert from_json(Settings, to_json(config)) == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": 2}', "run: schema is 2, and this version of arnpg reads 1"),
        ("{}", "schema is None"),
        ('{"schema": 1, "steps": 1, "steps": 2}', "steps is given twice"),
        ('{"schema": 1, "setps": 1}', "setps is not a setting; perhaps you meant steps"),
        ("[]", "must be a JSON object"),
        ("{", "not valid JSON"),
        ("[" * 10**5, "not valid JSON"),
    ],
)
def test_json_that_is_refused(text, message):
    with pytest.raises(SettingsError, match=message):
        from_json(Settings, text, "run: ")


def test_a_setting_without_default_is_asked_for():
    @dataclasses.dataclass(frozen=True)
    class Required:
        steps: int

    sys.modules[__name__].Required = Required
    with pytest.raises(SettingsError, match="steps has no default; give it"):
        load_config(Required)
