"""What "best" means, in the user's words: objectives have names, costs are limited with ``at_most``.

    Constrained(maximize="throughput", at_least={"battery": 3.0})              Section 4.2
    ProportionalFair({"alice": 1, "bob": 2}, offset=1e-3)                      Section 4.1
    MaxMin({"alice": 1.0, "bob": 2.0})                                         Section 4.3
    Linear({"throughput": 1.0, "delay": -0.2}),   Concave(lambda v: ...)
    Constrained(maximize=ProportionalFair(), at_most={"delay": 4.0})           a combination, as the framework allows

``bind`` turns names into arrays in the model's order, once; nobody else turns a cost round.
"""

from __future__ import annotations

import abc
import dataclasses
import difflib
import math
from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np

from arnpg.errors import ObjectiveError
from arnpg.objectives import AbstractObjective, ConcaveFunction, Criterion, LinearObjective, LogSum, Minimum

__all__ = ["AbstractCriterion", "Concave", "Constrained", "Discounted", "Linear", "MaxMin", "ProportionalFair"]


@dataclasses.dataclass(frozen=True)
class Discounted:
    """A limit on the discounted value of an episode, ``sum_t discount^t r_t``, where others are on its total.

    For training in environments; the values of a known model are discounted anyway.
    """

    limit: float
    discount: float

    def __post_init__(self) -> None:
        """Refuse what is no discount."""
        if not 0 <= self.discount < 1:
            raise ObjectiveError(f"discount must lie in [0, 1), got {self.discount}; a total needs no Discounted.")

    def __float__(self) -> float:
        """The limit."""
        return float(self.limit)


class AbstractCriterion(abc.ABC):
    """A criterion in words."""

    @abc.abstractmethod
    def objective(self, names: Sequence[str], free: Sequence[str]) -> AbstractObjective:
        """The concave function; ``free`` are the objectives that no constraint speaks of, the default selection."""

    def bind(self, names: Sequence[str]) -> Criterion:
        """The same criterion for a model whose objectives are ``names``, in that order."""
        return Criterion(self.objective(names, names), np.zeros((0, len(names))), np.zeros(0))

    def constraint_labels(self) -> tuple[str, ...]:
        """A label for each constraint, such as ``battery >= 3``."""
        return ()

    def discounts(self) -> dict[str, float]:
        """The discount of each objective whose limit is ``Discounted``."""
        return {}

    @abc.abstractmethod
    def describe(self, names: Sequence[str]) -> str:
        """The criterion in words, for a model with these objectives."""


@dataclasses.dataclass(frozen=True)
class Linear(AbstractCriterion):
    """Maximise a weighted sum; weights may be negative."""

    weights: Mapping[str, float]

    def objective(self, names: Sequence[str], free: Sequence[str]) -> AbstractObjective:
        """``F(v) = <w, v>``."""
        del free
        return LinearObjective(_vector("Linear weights", self.weights, names))

    def describe(self, names: Sequence[str]) -> str:
        """``maximise 1 throughput - 0.2 delay``."""
        if len(self.weights) == 1 and next(iter(self.weights.values())) == 1:
            return f"maximise {next(iter(self.weights))}"
        terms = [f"{'-' if weight < 0 else '+'} {abs(weight):g} {name}" for name, weight in self.weights.items()]
        return "maximise " + " ".join(terms).removeprefix("+ ")


@dataclasses.dataclass(frozen=True)
class ProportionalFair(AbstractCriterion):
    """Maximise ``sum_i a_i log(offset + V_i)``.

    ``weights`` maps objectives to ``a_i > 0``; without it every objective that no constraint names has weight one.
    """

    weights: Mapping[str, float] | None = None
    offset: float = 0.0

    def __post_init__(self) -> None:
        """Refuse weights and offsets outside the logarithm's range."""
        _positive("ProportionalFair weights", self.weights)
        if not (math.isfinite(self.offset) and self.offset >= 0):
            raise ObjectiveError(
                f"offset must be a finite number >= 0, got {self.offset}; 0 is plain proportional fairness."
            )

    def objective(self, names: Sequence[str], free: Sequence[str]) -> AbstractObjective:
        """``F(v) = sum_i a_i log(delta + v_i)``."""
        chosen = self.weights if self.weights is not None else dict.fromkeys(free, 1.0)
        return LogSum(_vector("ProportionalFair weights", chosen, names), np.asarray(self.offset, float))

    def describe(self, names: Sequence[str]) -> str:
        """``maximise the proportional fairness of a, b``."""
        return f"maximise the proportional fairness of {', '.join(self.weights or names)}"


@dataclasses.dataclass(frozen=True)
class MaxMin(AbstractCriterion):
    """Maximise ``min_i V_i / c_i``.

    ``scales`` maps objectives to ``c_i > 0``; without it every objective that no constraint names has scale one.
    """

    scales: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        """Refuse scales that are not positive."""
        _positive("MaxMin scales", self.scales)

    def objective(self, names: Sequence[str], free: Sequence[str]) -> AbstractObjective:
        """``F(v) = min_i v_i / c_i``."""
        scales = _vector("MaxMin scales", self.scales if self.scales is not None else dict.fromkeys(free, 1.0), names)
        chosen = np.flatnonzero(scales)
        return Minimum(np.eye(len(names))[chosen] / scales[chosen, None], np.zeros(len(chosen)))

    def describe(self, names: Sequence[str]) -> str:
        """``maximise the least of a, b``."""
        return f"maximise the least of {', '.join(self.scales or names)}"


@dataclasses.dataclass(frozen=True)
class Concave(AbstractCriterion):
    """Maximise any concave function of the value vector, written with ``jax.numpy``.

    ``function`` takes the values of ``over`` (default: all objectives, in the model's order) as one array.
    """

    function: Callable
    over: tuple[str, ...] | None = None

    def objective(self, names: Sequence[str], free: Sequence[str]) -> AbstractObjective:
        """``F(v) = f(v)``, checked on one value vector."""
        del free
        over = tuple(names) if self.over is None else tuple(self.over)
        chosen = np.array([_index("Concave over", name, names) for name in over])
        _check_function(self.function, len(over))
        if self.over is None:
            return ConcaveFunction(self.function)
        return ConcaveFunction(_Selected(self.function, tuple(chosen.tolist())))

    def describe(self, names: Sequence[str]) -> str:
        """``maximise f(a, b)``."""
        label = getattr(self.function, "__name__", "f")
        return f"maximise {'f' if label == '<lambda>' else label}({', '.join(self.over or names)})"


@dataclasses.dataclass(frozen=True)
class Constrained(AbstractCriterion):
    """Maximise an objective, or another criterion, under limits on values.

    ``maximize`` is the name of an objective or any criterion without limits of its own; ``at_least`` and ``at_most``
    map objectives to limits in the user's units.
    """

    maximize: str | AbstractCriterion
    at_least: Mapping[str, float | Discounted] = dataclasses.field(default_factory=dict)
    at_most: Mapping[str, float | Discounted] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse limits that are not numbers, and constraints inside constraints."""
        if isinstance(self.maximize, Constrained):
            raise ObjectiveError("maximize must not be Constrained itself; put all limits into the outer Constrained.")
        if not isinstance(self.maximize, str | AbstractCriterion):
            raise ObjectiveError(f"maximize must be an objective's name or a criterion, got {self.maximize!r}.")
        for side, limits in (("at_least", self.at_least), ("at_most", self.at_most)):
            if not isinstance(limits, Mapping):
                raise ObjectiveError(f'{side} must map names to limits, such as {{"battery": 3.0}}, got {limits!r}.')
            for name, limit in limits.items():
                if not math.isfinite(float(limit)):
                    raise ObjectiveError(f"{side}[{name!r}] must be a finite number, got {limit}; leave the limit out.")
        self.discounts()

    def objective(self, names: Sequence[str], free: Sequence[str]) -> AbstractObjective:
        """The objective under the constraints."""
        del free
        if isinstance(self.maximize, str):
            _index("maximize", self.maximize, names)
        return self._inner().objective(names, self._free(names))

    def _inner(self) -> AbstractCriterion:
        return Linear({self.maximize: 1.0}) if isinstance(self.maximize, str) else self.maximize

    def _free(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name not in {*self.at_least, *self.at_most}]

    def describe(self, names: Sequence[str]) -> str:
        """``maximise throughput subject to battery >= 3``."""
        limits = ", ".join(self.constraint_labels())
        return self._inner().describe(self._free(names)) + (f" subject to {limits}" if limits else "")

    def bind(self, names: Sequence[str]) -> Criterion:
        """``C v >= b``, with costs turned round: ``-v >= -limit``."""
        signed = [(n, 1.0, v) for n, v in self.at_least.items()] + [(n, -1.0, v) for n, v in self.at_most.items()]
        rows = np.zeros((len(signed), len(names)))
        for row, (name, sign, _) in zip(rows, signed, strict=True):
            row[_index("at_least" if sign > 0 else "at_most", name, names)] = sign
        thresholds = np.array([sign * float(limit) for _, sign, limit in signed], float)
        return Criterion(self.objective(names, names), rows, thresholds)

    def constraint_labels(self) -> tuple[str, ...]:
        """``name >= limit`` and ``name <= limit``, in the order of the multipliers."""
        return (
            *(f"{name} >= {float(limit):g}" for name, limit in self.at_least.items()),
            *(f"{name} <= {float(limit):g}" for name, limit in self.at_most.items()),
        )

    def discounts(self) -> dict[str, float]:
        """By objective; one objective has one notion of value."""
        found: dict[str, set[float | None]] = {}
        for name, limit in [*self.at_least.items(), *self.at_most.items()]:
            found.setdefault(name, set()).add(limit.discount if isinstance(limit, Discounted) else None)
        for name, kinds in found.items():
            if len(kinds) > 1:
                raise ObjectiveError(f"the limits on {name!r} must be of one kind: both with one discount, or neither.")
        return {name: kind for name, (kind,) in found.items() if kind is not None}


@dataclasses.dataclass(frozen=True)
class _Selected:
    """A function of some of the values; hashable, so that it compiles once."""

    function: Callable
    chosen: tuple[int, ...]

    def __call__(self, values: jax.Array) -> jax.Array:
        return self.function(values[np.array(self.chosen)])


def _index(argument: str, name: str, names: Sequence[str]) -> int:
    if name not in names:
        near = difflib.get_close_matches(str(name), names, n=1)
        hint = f"; perhaps you meant {near[0]!r}?" if near else "."
        raise ObjectiveError(f"{argument} names {name!r}, but the model's objectives are {', '.join(names)}{hint}")
    return list(names).index(name)


def _vector(argument: str, entries: Mapping[str, float], names: Sequence[str]) -> np.ndarray:
    if not isinstance(entries, Mapping) or not entries:
        raise ObjectiveError(f'{argument} must map at least one objective to a number, such as {{"a": 1.0}}.')
    vector = np.zeros(len(names))
    for name, value in entries.items():
        if not math.isfinite(value):
            raise ObjectiveError(f"{argument}[{name!r}] must be a finite number, got {value}.")
        vector[_index(argument, name, names)] = value
    return vector


def _positive(argument: str, entries: Mapping[str, float] | None) -> None:
    for name, value in (entries or {}).items():
        if not (math.isfinite(value) and value > 0):
            raise ObjectiveError(f"{argument}[{name!r}] must be > 0, got {value}; leave {name!r} out to ignore it.")


def _check_function(function: Callable, count: int) -> None:
    """Refuse a function whose answer on a value vector is not one number."""
    try:
        shape = jax.eval_shape(function, jax.ShapeDtypeStruct((count,), np.float32)).shape
    except Exception as error:
        raise ObjectiveError(
            f"Concave: the function failed on an array of shape ({count},): {error}; write it with jax.numpy."
        ) from error
    if shape != ():
        raise ObjectiveError(f"Concave: the function must return one number, got shape {shape}; sum over objectives.")
