"""ARNPG with optimistic mirror descent ascent (Algorithm 4): max-min, two updates a step from the same anchor."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from arnpg.arrays import AnyArray, Scalar
from arnpg.errors import ObjectiveError
from arnpg.inner_loop import AbstractInnerLoop, AbstractMicroSteps, Policy, Work, require_positive
from arnpg.method import AbstractMethod, StepInfo
from arnpg.objectives import Criterion, Minimum

__all__ = ["OMDA", "OMDAState"]


class OMDAState(eqx.Module):
    """``pi_k``, ``pi~_k`` with its values, ``lambda_k`` and ``lambda~_k`` on the simplex, and ``k``."""

    anchor: Policy
    policy: Policy
    values: Float[AnyArray, " m"]
    dual_anchor: Float[AnyArray, " p"]
    dual: Float[AnyArray, " p"]
    step: Int[AnyArray, ""]


class OMDA(AbstractMethod):
    """``Phi(v, lambda) = sum_i lambda_i v_i / c_i``; mirror steps on ``lambda`` with KL, ``dual_step`` is ``eta'``."""

    criterion: Criterion
    micro_steps: AbstractMicroSteps
    dual_step: Scalar

    def __check_init__(self) -> None:
        """A minimum, without constraints."""
        if not isinstance(self.criterion.objective, Minimum) or len(self.criterion.thresholds):
            raise ObjectiveError("ARNPG-OMDA takes MaxMin without constraints; try arnpg-imd or arnpg-epd.")
        require_positive("dual_step", self.dual_step)

    def init(self, inner: AbstractInnerLoop, policy: Policy, work: Work) -> tuple[OMDAState, Work]:
        """``pi~_0 = pi_0`` and uniform ``lambda_0 = lambda~_0``."""
        values, work = inner.evaluate(policy, work)
        uniform = jnp.full_like(self._parts(values), 1.0) / len(self._parts(values))
        return OMDAState(policy, policy, values, uniform, uniform, jnp.zeros((), int)), work

    def step(self, inner: AbstractInnerLoop, state: OMDAState, work: Work) -> tuple[OMDAState, Work, StepInfo]:
        """``(pi~, lambda~)_{k+1}`` along the last direction, then ``(pi, lambda)_{k+1}`` along the new one."""
        count = self.micro_steps(state.step, state.dual)
        weights = self._weights(state.dual)
        policy, work, info = inner.improve(state.anchor, weights, count, work)
        dual = self._mirror(state.dual_anchor, state.values)
        values, work = inner.evaluate(policy, work)
        anchor, work, second = inner.improve(state.anchor, self._weights(dual), count, work)
        dual_anchor = self._mirror(state.dual_anchor, values)
        shown = StepInfo(values, weights, dual, 2 * jnp.asarray(count, int), info.and_spent(second))
        return OMDAState(anchor, policy, values, dual_anchor, dual, state.step + 1), work, shown

    def iterate(self, state: OMDAState) -> Policy:
        """``pi~_k``."""
        return state.policy

    @property
    def _minimum(self) -> Minimum:
        objective = self.criterion.objective
        assert isinstance(objective, Minimum)  # __check_init__ saw to it
        return objective

    def _parts(self, values: Float[AnyArray, " m"]) -> Float[AnyArray, " p"]:
        return self._minimum.parts(values)

    def _weights(self, dual: Float[AnyArray, " p"]) -> Float[AnyArray, " m"]:
        """``G^v = grad_v Phi(v, lambda)``."""
        return dual @ self._minimum.rows

    def _mirror(self, anchor: Float[AnyArray, " p"], values: Float[AnyArray, " m"]) -> Float[AnyArray, " p"]:
        """``argmin <G^lambda, l> + D(l || anchor) / eta'`` with ``G^lambda = grad_lambda Phi(v, .)``."""
        return jax.nn.softmax(jnp.log(anchor) - self.dual_step * self._parts(values))
