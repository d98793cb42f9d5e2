"""Settings deep inside an algorithm by dotted names, ``rollout.paths``, from Python values or from words."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import numpy as np

from arnpg.errors import SettingsError

__all__ = ["converted", "plain", "with_setting"]


def with_setting(tree: Any, name: str, value: Any, words: Mapping[str, Mapping[str, Any]], whole: str = "") -> Any:
    """``tree`` with the field at this dotted name replaced, checked by the parts' own constructors.

    A text stands for what ``words`` has under the field's name, or for a number; a number stays of its kind.
    """
    head, _, rest = name.partition(".")
    whole = whole or name
    fields = [field.name for field in dataclasses.fields(tree)] if isinstance(tree, eqx.Module) else []
    if head not in fields:
        near = difflib.get_close_matches(head, fields, n=2, cutoff=0.5) or fields
        raise SettingsError(f"{whole} is not a setting: {type(tree).__name__} has {', '.join(near) or 'none'}.")
    old = getattr(tree, head)
    if rest:
        new = with_setting(old, rest, value, words, whole)
    elif head in words and isinstance(value, str):
        if value not in words[head]:
            raise SettingsError(f"{whole} must be one of {', '.join(words[head])}, got {value!r}.")
        new = words[head][value]
    else:
        new = converted(whole, old, value)
    return dataclasses.replace(tree, **{head: new})


def converted(name: str, old: Any, value: Any) -> Any:
    """``value``, perhaps a text, as the kind of number, or tuple, that ``old`` is; anything else as it is."""
    if isinstance(value, str):
        value = _parsed(value)
    if isinstance(old, tuple):
        return tuple(value) if isinstance(value, list | tuple) else (value,)
    kind = _kind(old)
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if kind is None or isinstance(value, eqx.Module) or (kind is bool and isinstance(value, bool)):
        return value
    if kind is int and number and float(value).is_integer():
        return int(value)
    if kind is float and number:
        return float(value)
    wanted = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
    raise SettingsError(f"{name} must be {wanted}, got {value!r}.")


def _kind(old: Any) -> type | None:
    """Of a setting; one that is none by default is a number that follows from others."""
    if old is None:
        return float
    return next((kind for kind in (bool, int, float) if isinstance(old, kind)), None)


def _parsed(text: str) -> Any:
    """``true``, ``12``, ``.5``, ``64,64``; any other text as it is."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if "," in text or text.startswith("["):
        return [_parsed(entry.strip()) for entry in text.strip("[]() ").split(",") if entry.strip()]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def plain(value: Any) -> Any:
    """A setting as JSON data: numbers and texts as they are, anything else in words."""
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return " ".join(repr(value).split())
