"""What is to be trained, checked and put together before anything is computed."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx

from arnpg.criteria import AbstractCriterion, Constrained, MaxMin
from arnpg.envs.device_check import check_device
from arnpg.envs.env import AbstractEnvironment
from arnpg.envs.find import Environment, find_environment
from arnpg.errors import ObjectiveError, SettingsError
from arnpg.inner_loop import FixedMicroSteps
from arnpg.method import Algorithm
from arnpg.methods import OMDA
from arnpg.neural.stored import WORDS
from arnpg.neural.values import AbstractValue, Discounted
from arnpg.objectives import Criterion
from arnpg.recipes.neural import METHODS
from arnpg.settings import converted, plain, with_setting

__all__ = ["HOST_OPTIONS", "Plan", "prepare"]

HOST_OPTIONS = ("backend", "time_limit", "workers", "options", "step_timeout", "on_fault")
NO_SETTINGS = ("env", "live")


class Plan(NamedTuple):
    """Everything that decides a training's result, checked."""

    env: Environment
    words: AbstractCriterion
    criterion: Criterion
    method: str
    algorithm: Algorithm
    steps: int
    step_iterations: int
    seeds: tuple[int, ...]
    settings: dict[str, Any]


def prepare(
    env: Any,
    criterion: AbstractCriterion,
    *,
    objectives: Mapping[str, Callable | str] | None = None,
    method: str | None = None,
    iterations: int = 300,
    seeds: int | Sequence[int] = 1,
    seed: int = 0,
    **settings: Any,
) -> Plan:
    """Check what is asked for and make the algorithm; nothing is computed."""
    _check(criterion, iterations)
    options = {name: settings.pop(name) for name in HOST_OPTIONS if name in settings}
    env = find_environment(env, objectives, **options)
    if isinstance(env, AbstractEnvironment):
        check_device(env)
    method = _method(criterion) if method is None else method
    if method not in METHODS:
        raise SettingsError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
    shown = {name: plain(value) for name, value in {**options, **settings}.items()}
    bound = criterion.bind(env.names)
    algorithm = _algorithm(env, bound, method, _with_discounts(env, bound, method, criterion, settings), iterations)
    per_step = _step_iterations(algorithm)
    return Plan(
        env=env,
        words=criterion,
        criterion=bound,
        method=method,
        algorithm=algorithm,
        steps=max(iterations // per_step, 1),
        step_iterations=per_step,
        seeds=_seeds(seeds, seed),
        settings=shown,
    )


def _with_discounts(
    env: Environment, bound: Criterion, method: str, criterion: AbstractCriterion, settings: dict[str, Any]
) -> dict[str, Any]:
    """Objectives with a ``Discounted`` limit are valued so, all others as the inner loop has it."""
    discounts = criterion.discounts()
    if not discounts:
        return settings
    if "values" in settings:
        raise SettingsError("values and a Discounted limit both say how objectives are valued; leave one out.")
    usual: Any = METHODS[method](env, bound).inner
    parts = (Discounted(discounts[name]) if name in discounts else usual.values for name in env.names)
    return {**settings, "values": tuple(parts)}


def _algorithm(
    env: Environment, criterion: Criterion, method: str, settings: dict[str, Any], iterations: int
) -> Algorithm:
    """The recipe with its own settings and whole parts; then words, and what has dots, inside the inner loop."""
    recipe = METHODS[method]
    own = {p.name: p.default for p in inspect.signature(recipe).parameters.values() if p.kind is p.KEYWORD_ONLY}
    mine = {name: converted(name, own[name], value) for name, value in settings.items() if name in own}
    rest = {name: value for name, value in settings.items() if name not in own}
    if "iterations" in own:
        mine["iterations"] = iterations
    usual: Any = recipe(env, criterion).inner
    fields = [field.name for field in dataclasses.fields(usual) if field.name not in NO_SETTINGS]
    parts = {name: getattr(usual, name) for name in fields}
    for name, value in rest.items():
        if name.partition(".")[0] not in parts:
            known = ", ".join([*own, *parts])
            raise SettingsError(f"{name!r} is not a setting of {method!r}; it has {known}.")
        if "." not in name and name not in WORDS:
            _check_part(name, parts[name], value)
    if "values" in rest:
        rest["values"] = _notions(rest["values"])
    whole = {name: value for name, value in rest.items() if "." not in name and not isinstance(value, str)}
    algorithm = recipe(env, criterion, **mine, **whole)
    for name, value in rest.items():
        if name not in whole:
            algorithm = Algorithm(algorithm.method, with_setting(algorithm.inner, name, value, WORDS))
    return algorithm


def _check_part(name: str, usual: Any, value: Any) -> None:
    """A part must be of the kind that stands in its place."""
    if not isinstance(usual, eqx.Module):
        return
    kind = next(of for of in reversed(type(usual).__mro__) if issubclass(of, eqx.Module) and of is not eqx.Module)
    if not isinstance(value, kind):
        example = f"{type(usual).__name__}(...)"
        raise SettingsError(f"{name} must be a part such as {example}, got {value!r}; its settings have dots.")


def _notions(given: Any) -> Any:
    """One notion of value, or a tuple with one for each objective; words stand for parts."""
    if isinstance(given, str) and "," not in given:
        return given
    each: list[Any] = given.split(",") if isinstance(given, str) else [given]
    each = list(given) if isinstance(given, list | tuple) else each
    known = WORDS["values"]
    for entry in each:
        if not isinstance(entry, AbstractValue) and (not isinstance(entry, str) or entry.strip() not in known):
            raise SettingsError(f"values must be of {', '.join(known)}, one or one for each objective, got {given!r}.")
    found = tuple(known[entry.strip()] if isinstance(entry, str) else entry for entry in each)
    return found[0] if len(found) == 1 else found


def _method(criterion: AbstractCriterion) -> str:
    if isinstance(criterion, Constrained):
        return "arnpg-epd" if criterion.constraint_labels() else "arnpg-imd"
    return "arnpg-omda" if isinstance(criterion, MaxMin) else "arnpg-imd"


def _step_iterations(algorithm: Algorithm) -> int:
    """Micro steps of a macro step; ARNPG-OMDA takes two inner loops."""
    rule = getattr(algorithm.method, "micro_steps", None)
    if not isinstance(rule, FixedMicroSteps):
        raise SettingsError(f"micro_steps must be a whole number here, got {rule!r}; iterations counts micro steps.")
    return int(rule.count) * (2 if isinstance(algorithm.method, OMDA) else 1)


def _seeds(seeds: int | Sequence[int], first: int) -> tuple[int, ...]:
    if isinstance(seeds, bool) or isinstance(first, bool) or not isinstance(first, int) or first < 0:
        raise SettingsError(f"seed must be a whole number >= 0, got {first!r}.")
    if isinstance(seeds, str) or not isinstance(seeds, int | Sequence):
        raise SettingsError(f"seeds must be a whole number, or a list of them, got {seeds!r}.")
    if isinstance(seeds, int):
        if seeds < 1:
            raise SettingsError(f"seeds must be at least 1, got {seeds}; or give them as a list.")
        return tuple(range(first, first + seeds))
    found = tuple(seeds)
    whole = all(isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 for seed in found)
    if not found or not whole or len(set(found)) < len(found):
        raise SettingsError(f"seeds must hold different whole numbers >= 0, got {list(seeds)}.")
    return found


def _check(criterion: Any, iterations: Any) -> None:
    if not isinstance(criterion, AbstractCriterion):
        raise ObjectiveError(
            f"criterion must be Constrained, ProportionalFair, MaxMin, Linear or Concave, got {criterion!r}."
        )
    if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
        raise SettingsError(f"iterations must be a whole number >= 1, got {iterations!r}.")
