"""FOCOPS's dual (Zhang et al. 2020): projected dual ascent between 0 and a cap, at the policy to be improved."""

import jax.numpy as jnp
from jaxtyping import Float

from arnpg.arrays import AnyArray, Scalar, ScalarOrEach
from arnpg.inner_loop import AbstractMicroSteps, require_positive
from arnpg.method import AbstractAnchorMethod, require_smooth_constrained
from arnpg.objectives import Criterion

__all__ = ["FOCOPS"]


class FOCOPS(AbstractAnchorMethod):
    """``nu <- clip(nu + eta' (b - V(pi_k)), 0, cap)``, then a step on ``r_1 + sum_i nu_i r_i`` (Appendix A.3).

    With a proximal inner loop without anchor it is FOCOPS; it runs on any other.
    """

    criterion: Criterion
    micro_steps: AbstractMicroSteps
    dual_step: ScalarOrEach
    cap: Scalar

    def __check_init__(self) -> None:
        """A smooth objective under constraints."""
        require_smooth_constrained("FOCOPS", self.criterion)
        require_positive("dual_step", self.dual_step)
        require_positive("cap", self.cap)

    def initial_dual(self, values: Float[AnyArray, " m"]) -> Float[AnyArray, " c"]:
        """One dual step from 0."""
        return self.update_dual(0 * self.criterion.slack(values), values, values)

    def weights(self, values: Float[AnyArray, " m"], dual: Float[AnyArray, " c"]) -> Float[AnyArray, " m"]:
        """``r~_k = r_1 + sum_i nu_i r_i``."""
        return self.criterion.ascent(values, dual)

    def update_dual(
        self, dual: Float[AnyArray, " c"], values: Float[AnyArray, " m"], new_values: Float[AnyArray, " m"]
    ) -> Float[AnyArray, " c"]:
        """The dual that the next step is taken with, from the values of its own policy."""
        return jnp.clip(dual - self.dual_step * self.criterion.slack(new_values), 0.0, self.cap)
