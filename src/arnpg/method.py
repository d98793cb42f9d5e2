"""A macro step: the body of an algorithm box, written once for any inner loop.

A method is a first-order method on value vectors. It chooses ascent weights, calls the inner loop, and moves its dual
variables; it knows neither states nor actions nor networks.
"""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Float, Int

from arnpg.arrays import AnyArray
from arnpg.errors import ObjectiveError
from arnpg.inner_loop import AbstractInnerLoop, AbstractMicroSteps, InnerInfo, Policy, Work
from arnpg.objectives import Criterion

__all__ = [
    "AbstractAnchorMethod",
    "AbstractDualFreeMethod",
    "AbstractMethod",
    "Algorithm",
    "AnchorState",
    "StepInfo",
    "require_smooth_constrained",
]

State = Any


class StepInfo(eqx.Module):
    """What one macro step shows; stacked over the steps it is the trace of a run."""

    values: Float[AnyArray, " m"]
    weights: Float[AnyArray, " m"]
    dual: Float[AnyArray, " d"]
    micro_steps: Int[AnyArray, ""]
    inner: InnerInfo


class AbstractMethod(eqx.Module):
    """A first-order method on value vectors."""

    criterion: eqx.AbstractVar[Criterion]

    @abc.abstractmethod
    def init(self, inner: AbstractInnerLoop, policy: Policy, work: Work) -> tuple[State, Work]:
        """The state before the first macro step."""

    @abc.abstractmethod
    def step(self, inner: AbstractInnerLoop, state: State, work: Work) -> tuple[State, Work, StepInfo]:
        """One macro step: the body of the algorithm box."""

    @abc.abstractmethod
    def iterate(self, state: State) -> Policy:
        """The policy whose values the last step reported: ``pi_k``, or ``pi~_k`` for ARNPG-OMDA."""


class AnchorState(eqx.Module):
    """``pi_k``, ``V_{1:m}(pi_k)``, ``lambda_k`` and ``k``."""

    policy: Policy
    values: Float[AnyArray, " m"]
    dual: Float[AnyArray, " d"]
    step: Int[AnyArray, ""]


class AbstractAnchorMethod(AbstractMethod):
    """A method whose anchor is its last iterate: it states its ascent weights and its dual update, nothing else."""

    criterion: eqx.AbstractVar[Criterion]
    micro_steps: eqx.AbstractVar[AbstractMicroSteps]

    @abc.abstractmethod
    def initial_dual(self, values: Float[AnyArray, " m"]) -> Float[AnyArray, " d"]:
        """``lambda_0``."""

    @abc.abstractmethod
    def weights(self, values: Float[AnyArray, " m"], dual: Float[AnyArray, " d"]) -> Float[AnyArray, " m"]:
        """``G_k``, so that the ascent reward is ``<G_k, r_{1:m}>``."""

    @abc.abstractmethod
    def update_dual(
        self, dual: Float[AnyArray, " d"], values: Float[AnyArray, " m"], new_values: Float[AnyArray, " m"]
    ) -> Float[AnyArray, " d"]:
        """``lambda_{k+1}`` from ``lambda_k``, ``V(pi_k)`` and ``V(pi_{k+1})``."""

    def init(self, inner: AbstractInnerLoop, policy: Policy, work: Work) -> tuple[AnchorState, Work]:
        """Evaluate ``pi_0`` and set ``lambda_0``."""
        values, work = inner.evaluate(policy, work)
        return AnchorState(policy, values, self.initial_dual(values), jnp.zeros((), int)), work

    def step(self, inner: AbstractInnerLoop, state: AnchorState, work: Work) -> tuple[AnchorState, Work, StepInfo]:
        """``pi_{k+1} <- InnerLoop(pi_k, <G_k, r>, alpha, eta, t_k)``, then the dual update."""
        weights = self.weights(state.values, state.dual)
        micro_steps = self.micro_steps(state.step, state.dual)
        policy, work, info = inner.improve(state.policy, weights, micro_steps, work)
        values, work = inner.evaluate(policy, work)
        dual = self.update_dual(state.dual, state.values, values)
        shown = StepInfo(values, weights, dual, jnp.asarray(micro_steps, int), info)
        return AnchorState(policy, values, dual, state.step + 1), work, shown

    def iterate(self, state: AnchorState) -> Policy:
        """``pi_k``."""
        return state.policy


class AbstractDualFreeMethod(AbstractAnchorMethod):
    """A one-anchor method without dual variables: it states its ascent weights only."""

    criterion: eqx.AbstractVar[Criterion]
    micro_steps: eqx.AbstractVar[AbstractMicroSteps]

    def initial_dual(self, values: Float[AnyArray, " m"]) -> Float[AnyArray, " 0"]:
        """None."""
        return values[:0]

    def update_dual(
        self, dual: Float[AnyArray, " 0"], values: Float[AnyArray, " m"], new_values: Float[AnyArray, " m"]
    ) -> Float[AnyArray, " 0"]:
        """None."""
        return dual


class Algorithm(eqx.Module):
    """Algorithm = first-order method on value vectors x inner loop."""

    method: AbstractMethod
    inner: AbstractInnerLoop


def require_smooth_constrained(method: str, criterion: Criterion) -> None:
    """Refuse a criterion that a primal-dual method has no formula for."""
    if not criterion.objective.smooth or not len(criterion.thresholds):
        raise ObjectiveError(
            f"{method} takes a smooth objective under constraints; without constraints use arnpg-imd, "
            "for MaxMin arnpg-omda, for MaxMin under constraints the default method."
        )
