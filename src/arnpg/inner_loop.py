"""The inner loop of the paper (Algorithm 1), as an interface that methods need to know and nothing more.

Down goes an anchor policy and ascent weights ``G`` in R^m; up comes a policy and its value vector ``V`` in R^m:

    improve:   pi' ~ argmax_pi  <G, V^pi> - alpha / (1 - gamma) * D_{d^pi}(pi || anchor)        (Section 3, eq. 4)
    evaluate:  V_{1:m}(rho) of a policy, exact or estimated

A policy is whatever the inner loop says it is: a table, a neural network, a point of a polytope. ``work`` is what the
inner loop carries from call to call and the method never looks into: a random key, critics, environment states.
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Float, Int, PRNGKeyArray

from arnpg.arrays import AnyArray
from arnpg.errors import SettingsError

__all__ = [
    "AbstractInnerLoop",
    "AbstractMicroSteps",
    "FixedMicroSteps",
    "InnerInfo",
    "ScheduledMicroSteps",
    "TheoremMicroSteps",
    "require_positive",
]

Policy = Any
Work = Any


class InnerInfo(eqx.Module):
    """What one call of the inner loop shows: KL to the anchor, entropy of the new policy, environment steps taken.

    ``episode_length`` is the mean number of steps of an episode, where there are episodes; ``faults``, how many of them
    were lost to an environment that broke, where that can be.
    """

    kl: Float[AnyArray, ""]
    entropy: Float[AnyArray, ""]
    env_steps: Int[AnyArray, ""]
    episode_length: Float[AnyArray, ""] | None = None
    faults: Int[AnyArray, ""] | None = None

    def and_spent(self, other: "InnerInfo") -> "InnerInfo":
        """The same, with the steps and faults of another call as well."""
        faults = None if self.faults is None or other.faults is None else self.faults + other.faults
        return InnerInfo(self.kl, self.entropy, self.env_steps + other.env_steps, self.episode_length, faults)


class AbstractInnerLoop(eqx.Module):
    """Algorithm 1, in any implementation.

    ``float64`` says in which precision it is to be compiled; ``vectorised``, whether several runs go faster as one
    vectorised program (small arrays) than each by itself on the next free core (large ones); ``compiled``, whether a
    macro step can be compiled at all: not where it steps environments of the host.
    """

    float64: ClassVar[bool] = False
    vectorised: ClassVar[bool] = True
    compiled: ClassVar[bool] = True

    @abc.abstractmethod
    def start(self, key: PRNGKeyArray) -> tuple[Policy, Work]:
        """The initial policy ``pi_0`` and the work to carry."""

    @abc.abstractmethod
    def improve(
        self, anchor: Policy, weights: Float[AnyArray, " m"], micro_steps: int | Int[AnyArray, ""], work: Work
    ) -> tuple[Policy, Work, InnerInfo]:
        """``InnerLoop(anchor, <weights, r>, alpha, eta, micro_steps)``."""

    @abc.abstractmethod
    def evaluate(self, policy: Policy, work: Work) -> tuple[Float[AnyArray, " m"], Work]:
        """The value vector ``V_{1:m}`` of a policy."""


class AbstractMicroSteps(eqx.Module):
    """How many micro steps ``t_k`` the inner loop takes at macro step ``k``."""

    @abc.abstractmethod
    def __call__(self, step: Int[AnyArray, ""], dual: Float[AnyArray, " d"]) -> int | Int[AnyArray, ""]:
        """``t_k``, which may depend on ``k`` and on the dual variables."""


class FixedMicroSteps(AbstractMicroSteps):
    """The same ``t_k`` at every step; a whole number is part of the program, an array is data and compiles once."""

    count: int | Int[AnyArray, ""]

    def __check_init__(self) -> None:
        """At least one step."""
        if isinstance(self.count, bool) or (isinstance(self.count, int) and self.count < 1):
            raise SettingsError(f"micro_steps must be a whole number >= 1, got {self.count!r}.")

    def __call__(self, step: Int[AnyArray, ""], dual: Float[AnyArray, " d"]) -> int | Int[AnyArray, ""]:
        """``t_k = count``."""
        return self.count


class ScheduledMicroSteps(AbstractMicroSteps):
    """A schedule in ``k``, such as the ``log k`` of the remark under Corollary 1."""

    schedule: Callable[[Int[AnyArray, ""]], Int[AnyArray, ""]]

    def __call__(self, step: Int[AnyArray, ""], dual: Float[AnyArray, " d"]) -> Int[AnyArray, ""]:
        """``t_k = max(schedule(k), 1)``."""
        return jnp.maximum(jnp.asarray(self.schedule(step)).astype(int), 1)


class TheoremMicroSteps(AbstractMicroSteps):
    """The number of micro steps under which Theorems 1-3 are proved.

    ``t_k = ceil(log(5 L_k K / (c log|A|)) / (1 - gamma) + 1)`` with ``L_k = base + dual_weight * sum(lambda_k)``. The
    constants are those of ``arnpg.tabular.theory``; only Theorem 2 has ``dual_weight = 1``.
    """

    discount: float
    base: float
    dual_weight: float
    scale: float

    def __call__(self, step: Int[AnyArray, ""], dual: Float[AnyArray, " d"]) -> Int[AnyArray, ""]:
        """``t_k``; ``scale`` is ``5 K / (c log|A|)``."""
        bound = self.base + self.dual_weight * jnp.sum(dual)
        return jnp.ceil(jnp.log(self.scale * bound) / (1 - self.discount) + 1).astype(int)


def require_positive(name: str, value: Any) -> None:
    """Refuse a setting that must be a finite number above zero; arrays of a batch are not looked into."""
    if isinstance(value, int | float) and not 0 < value < float("inf"):
        raise SettingsError(f"{name} must be a finite number > 0, got {value}.")
