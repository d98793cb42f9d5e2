"""What a solve returns: the policy, its values, what is proved about them, and how they came about."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np

from arnpg.archive import read_archive, write_archive
from arnpg.errors import ModelError
from arnpg.tabular.policy import TabularPolicy

__all__ = ["Candidate", "Solution", "Trace", "log_log_slope", "running_mean"]


@dataclasses.dataclass(frozen=True)
class Trace:
    """One row for each macro step ``k = 1..K``; columns that a method does not have are empty.

    Attributes:
        values: ``V_{1:m}(pi_k)``, ``(K, m)``.
        objective: ``F(V(pi_k))``.
        violation: the largest ``b_i - V_i(pi_k)``, at least zero.
        weights: the ascent weights ``G_k``, ``(K, m)``.
        dual: the dual variables, ``(K, d)``.
        micro_steps: ``t_k``, or policy evaluations for the default method; two inner loops count twice.
        kl: ``D_{d^pi}(pi_{k+1} || pi_k)``.
        entropy: the mean entropy of the policy.
        bound: the certified upper bound of the optimum so far.
        seconds: since the start.
    """

    values: np.ndarray
    objective: np.ndarray
    violation: np.ndarray
    weights: np.ndarray
    dual: np.ndarray
    micro_steps: np.ndarray
    kl: np.ndarray
    entropy: np.ndarray
    bound: np.ndarray
    seconds: np.ndarray

    def __len__(self) -> int:
        """``K``."""
        return len(self.values)

    def average_gap(self, optimum: float) -> np.ndarray:
        """``F* - (1/k) sum_{j <= k} F(V(pi_j))`` for each ``k``: the left side of Theorems 1 and 2."""
        return optimum - running_mean(self.objective)

    def average_values(self) -> np.ndarray:
        """``(1/k) sum_{j <= k} V(pi_j)`` for each ``k``, ``(K, m)``."""
        return running_mean(self.values)


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One policy a run can return, with its exact values."""

    policy: TabularPolicy
    values: np.ndarray
    objective: float
    violation: float


@dataclasses.dataclass(frozen=True)
class Solution:
    """The answer.

    Attributes:
        method: the algorithm's name.
        criterion: the criterion in words.
        values: ``V_i(rho)`` of the policy, by name, in the user's units and sign.
        objective: ``F`` of these values.
        violation: the largest violation of a constraint; 0 where all hold.
        multipliers: for each constraint, how much the optimum grows if its limit is relaxed by one unit.
        gap: the optimum is at most this much above ``objective``, rigorously.
        bound: ``objective + gap``.
        relative_gap: the gap relative to the objective's size.
        certified: whether ``relative_gap`` is at most the gap asked for and the constraints hold.
        how: how the bound was obtained, in words.
        policy: one stationary policy that attains ``values``.
        candidates: ``average``, ``best``, ``last`` of a plain algorithm; the policy is the best of them.
        trace: how it came about.
        notes: what the reader should know: conditioning, ranges, relaxed limits.
        seconds: wall time.
    """

    method: str
    criterion: str
    values: dict[str, float]
    objective: float
    violation: float
    multipliers: dict[str, float]
    gap: float
    relative_gap: float
    certified: bool
    how: str
    policy: TabularPolicy
    candidates: dict[str, Candidate]
    trace: Trace
    notes: tuple[str, ...]
    seconds: float

    @property
    def bound(self) -> float:
        """No policy that meets the constraints has an objective above this."""
        return self.objective + self.gap

    def summary(self) -> str:
        """A table for a terminal."""
        rows = [("criterion", self.criterion), ("method", self.method)]
        rows += [(f"value of {name}", f"{value:.9g}") for name, value in self.values.items()]
        rows += [("objective", f"{self.objective:.12g}"), ("optimum at most", f"{self.bound:.12g}")]
        rows += [("gap", f"{self.gap:.2e} (relative {self.relative_gap:.1e})"), ("bound by", self.how)]
        rows += [("violation", f"{self.violation:.2e}" if self.violation else "none")]
        rows += [(f"price of {label}", f"{price:.6g}") for label, price in self.multipliers.items()]
        rows += [
            ("steps", f"{len(self.trace)} in {self.seconds:.3f} s"),
            ("certified", "yes" if self.certified else "no"),
        ]
        rows += [("note", note) for note in self.notes]
        width = max(len(label) for label, _ in rows)
        return "\n".join(f"{label:<{width}}  {text}" for label, text in rows)

    def plot(self, path: str | os.PathLike | None = None) -> Any:
        """Draw objective, bound and gap against steps; returns the matplotlib figure, saved where a path is given."""
        from arnpg.report.plots import plot_solution

        return plot_solution(self, path)

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one ``.npz`` file without pickle; ``Solution.load`` reads it back."""
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in _ARRAYS}
        arrays = {f"trace/{f.name}": getattr(self.trace, f.name) for f in dataclasses.fields(Trace)}
        arrays["policy"] = self.policy.probabilities
        header = plain | {"candidates": {}}
        for name, candidate in self.candidates.items():
            arrays |= {f"{name}/policy": candidate.policy.probabilities, f"{name}/values": candidate.values}
            header["candidates"][name] = [candidate.objective, candidate.violation]
        write_archive(path, "solution", header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Solution:
        """Read what ``save`` wrote."""
        header, arrays = read_archive(path, "solution")
        try:
            trace = Trace(**{f.name: arrays[f"trace/{f.name}"] for f in dataclasses.fields(Trace)})
            candidates = {
                name: Candidate(TabularPolicy(arrays[f"{name}/policy"]), arrays[f"{name}/values"], *numbers)
                for name, numbers in header["candidates"].items()
            }
            plain = {f.name: header[f.name] for f in dataclasses.fields(cls) if f.name not in _ARRAYS}
        except KeyError as error:
            raise ModelError(f"{path} is not a complete solution file: {error} is missing.") from error
        plain["notes"] = tuple(plain["notes"])
        return cls(policy=TabularPolicy(arrays["policy"]), candidates=candidates, trace=trace, **plain)


_ARRAYS = ("policy", "candidates", "trace")


def running_mean(rows: np.ndarray) -> np.ndarray:
    """The mean of the first ``k`` rows, for each ``k``."""
    counts = np.arange(1, len(rows) + 1).reshape(-1, *[1] * (rows.ndim - 1))
    return np.cumsum(rows, axis=0) / counts


def log_log_slope(series: np.ndarray, first: int = 10) -> float:
    """The least-squares slope of ``log |series|`` against ``log k`` for ``k >= first``."""
    k = np.arange(1, len(series) + 1)[first - 1 :]
    return float(np.polyfit(np.log(k), np.log(np.abs(series[first - 1 :]) + 1e-300), 1)[0])
