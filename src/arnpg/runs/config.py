"""Settings from a TOML file and ``key=value`` words into a frozen dataclass, strictly.

Only what the dataclass declares is accepted; every refusal names the file, the key and the value. Nothing in a file is
ever evaluated. Ranges are declared beside the default: ``step_size: float = setting(1.0, above=0)``.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import difflib
import json
import math
import os
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

from arnpg.errors import SettingsError

__all__ = ["build", "from_json", "load_config", "parse_overrides", "read_toml", "setting", "to_json"]

SCHEMA = 1
MAX_BYTES = 2**20
BOUNDS = {
    "above": ("> ", lambda value, bound: value > bound),
    "at_least": (">= ", lambda value, bound: value >= bound),
    "below": ("< ", lambda value, bound: value < bound),
    "at_most": ("<= ", lambda value, bound: value <= bound),
}

Settings = TypeVar("Settings")


def setting(
    default: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    finite: bool = True,
) -> Any:
    """A field with a range; the bounds hold for each entry of a tuple."""
    given = {"above": above, "at_least": at_least, "below": below, "at_most": at_most}
    bounds = {name: bound for name, bound in given.items() if bound is not None}
    return dataclasses.field(default=default, metadata={"bounds": bounds, "finite": finite})


def load_config(kind: type[Settings], path: str | os.PathLike | None = None, overrides: Sequence[str] = ()) -> Settings:
    """An instance of the frozen dataclass ``kind``: defaults, then the file, then the words ``key=value``."""
    data = {} if path is None else read_toml(path)
    where = "" if path is None else f"{path}: "
    config = build(kind, data, where)
    return config if not overrides else build(kind, _merged(kind, data, parse_overrides(overrides)), where)


def read_toml(path: str | os.PathLike) -> dict[str, Any]:
    """A TOML file as plain data; a byte order mark and Windows line ends are fine."""
    text = _text(Path(path))
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        hint = "; a key is given twice, keep one" if "overwrite" in str(error) or "twice" in str(error) else ""
        raise SettingsError(f"{path} is not valid TOML: {error}{hint}.") from error
    if not found:
        raise SettingsError(f"{path} holds no settings; leave it out to use the defaults.")
    return found


def parse_overrides(words: Sequence[str]) -> dict[str, str]:
    """``["steps=100", "inner.step_size=0.5"]`` as ``{"steps": "100", "inner.step_size": "0.5"}``."""
    found: dict[str, str] = {}
    for word in words:
        key, equals, text = word.partition("=")
        key = key.strip()
        if not equals or not key:
            raise SettingsError(f"a setting is given as key=value, such as steps=100, got {word!r}.")
        if key in found:
            raise SettingsError(f"{key} is given twice; keep one.")
        found[key] = text.strip()
    return found


def to_json(config: Any) -> str:
    """A configuration as JSON with its schema version; ``from_json`` gives it back, equal in every bit."""
    return json.dumps({"schema": SCHEMA, **dataclasses.asdict(config)}, indent=2)


def from_json(kind: type[Settings], text: str, where: str = "") -> Settings:
    """What ``to_json`` wrote, as strictly checked as a file."""
    try:
        data = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{where}not valid JSON: {error}.") from error
    if not isinstance(data, dict):
        raise SettingsError(f"{where}settings must be a JSON object, got {type(data).__name__}.")
    schema = data.pop("schema", None)
    if schema != SCHEMA:
        raise SettingsError(f"{where}schema is {schema!r}, and this version of arnpg reads {SCHEMA}.")
    return build(kind, data, where)


def build(kind: type[Settings], data: Mapping[str, Any], where: str = "", prefix: str = "") -> Settings:
    """``kind`` from plain data; ``where`` and ``prefix`` lead every message."""
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}  # type: ignore[arg-type]
    hints = typing.get_type_hints(kind)
    values = {}
    for key, value in data.items():
        if key not in fields:
            raise SettingsError(f"{where}{prefix}{key} is not a setting{_near(key, fields)}")
        values[key] = _converted(hints[key], value, f"{where}{prefix}{key}", where, f"{prefix}{key}.")
        _check_range(fields[key], values[key], f"{where}{prefix}{key}")
    required = [f.name for f in fields.values() if f.default is f.default_factory is dataclasses.MISSING]
    for name in required:
        if name not in values:
            raise SettingsError(f"{where}{prefix}{name} has no default; give it.")
    try:
        return kind(**values)
    except SettingsError as error:
        raise SettingsError(f"{where}{error}") from error


def _converted(hint: Any, value: Any, name: str, where: str, prefix: str) -> Any:
    """``value`` as the type that is declared; an ``int`` will do for a ``float``, nothing else is converted."""
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
        return build(typing.cast(type, hint), value, where, prefix)
    if origin in (Union, types.UnionType):
        return _any_of(options, value, name, where, prefix)
    if origin is Literal:
        if not any(value == option and type(value) is type(option) for option in options):
            near = _near(value, options) if isinstance(value, str) else "."
            raise SettingsError(f"{name} must be one of {', '.join(map(str, options))}, got {value!r}{near}")
        return value
    if origin is tuple and isinstance(value, list | tuple):
        inner = [options[0]] * len(value) if options[1:] == (...,) else list(options)
        if len(inner) != len(value):
            raise SettingsError(f"{name} must have {len(inner)} entries, got {len(value)}.")
        return tuple(_converted(inner[i], entry, f"{name}[{i}]", where, prefix) for i, entry in enumerate(value))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is Path and isinstance(value, str):
        return Path(value)
    if isinstance(hint, type) and origin is None and type(value) is hint:
        return value
    raise SettingsError(f"{name} must be {_words(hint)}, got {value!r}.")


def _any_of(options: tuple, value: Any, name: str, where: str, prefix: str) -> Any:
    if value is None and type(None) in options:
        return None
    kinds = [option for option in options if option is not type(None)]
    for option in kinds:
        try:
            return _converted(option, value, name, where, prefix)
        except SettingsError:
            if len(kinds) == 1:
                raise
    raise SettingsError(f"{name} must be {' or '.join(map(_words, kinds))}, got {value!r}.")


def _check_range(field: dataclasses.Field, value: Any, name: str) -> None:
    for entry in value if isinstance(value, tuple) else (value,):
        if isinstance(entry, bool) or not isinstance(entry, int | float):
            continue
        if math.isnan(entry) or (math.isinf(entry) and field.metadata.get("finite", True)):
            raise SettingsError(f"{name} must be a finite number, got {entry}.")
        for bound, limit in field.metadata.get("bounds", {}).items():
            sign, holds = BOUNDS[bound]
            if not holds(entry, limit):
                raise SettingsError(f"{name} must be {sign}{limit}, got {entry}.")


def _merged(kind: type, data: dict[str, Any], overrides: Mapping[str, str]) -> dict[str, Any]:
    """``data`` with dotted keys replaced."""
    merged = copy.deepcopy(data)
    for key, text in overrides.items():
        place, here = merged, kind
        *path, last = key.split(".")
        for part in path:
            hints = typing.get_type_hints(here)
            if not dataclasses.is_dataclass(hints.get(part)):
                raise SettingsError(f"{key} is not a setting{_near(part, hints)}")
            here, place = typing.cast(type, hints[part]), place.setdefault(part, {})
        place[last] = _value(text, typing.get_type_hints(here).get(last))
    return merged


def _value(text: str, hint: Any) -> Any:
    """A TOML value; where text is wanted, or nothing else fits, the text as it is."""
    choice = typing.get_origin(hint) in (Union, types.UnionType, Literal)  # of a sequence the arguments are its entries
    options = set(typing.get_args(hint)) if choice else {hint}
    if text.lower() == "none" and type(None) in options:
        return None
    wants_text = options & {str, Path} or all(isinstance(option, str) for option in options)
    if not wants_text or text[:1] in ("'", '"'):
        with contextlib.suppress(ValueError, RecursionError):
            return tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
        with contextlib.suppress(ValueError):  # .5 and 5. are no TOML
            return float(text)
    return text


def _text(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise SettingsError(f"{path} has {size} bytes; a file of settings has at most {MAX_BYTES}.")
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except IsADirectoryError as error:
        raise SettingsError(f"{path} is a folder; give the path of a TOML file.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from error
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}.") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for key, _ in pairs:
        if sum(key == other for other, _ in pairs) > 1:
            raise ValueError(f"{key} is given twice")
    return dict(pairs)


def _near(word: Any, known: Any) -> str:
    near = difflib.get_close_matches(str(word), [str(name) for name in known], n=2, cutoff=0.5)
    return f"; perhaps you meant {' or '.join(near)}?" if near else "."


def _words(hint: Any) -> str:
    plain = {int: "a whole number", float: "a number", bool: "true or false", str: "text", Path: "a path"}
    if dataclasses.is_dataclass(hint):
        return "a table of settings"
    return plain.get(hint, "a list" if typing.get_origin(hint) is tuple else str(hint))
