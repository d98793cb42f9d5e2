"""NPG primal-dual (Ding et al. 2020): an NPG step on the Lagrangian, then a projected dual step."""

import jax.numpy as jnp
from jaxtyping import Float

from arnpg.arrays import AnyArray, ScalarOrEach
from arnpg.inner_loop import AbstractMicroSteps, require_positive
from arnpg.method import AbstractAnchorMethod, require_smooth_constrained
from arnpg.objectives import Criterion

__all__ = ["NPGPD"]


class NPGPD(AbstractAnchorMethod):
    """``lambda_{k+1} = max(0, lambda_k + eta' (b - V(pi_k)))``: both updates use the same iterate."""

    criterion: Criterion
    micro_steps: AbstractMicroSteps
    dual_step: ScalarOrEach

    def __check_init__(self) -> None:
        """A smooth objective under constraints."""
        require_smooth_constrained("NPG-PD", self.criterion)
        require_positive("dual_step", self.dual_step)

    def initial_dual(self, values: Float[AnyArray, " m"]) -> Float[AnyArray, " c"]:
        """``lambda_0 = 0``."""
        return 0 * self.criterion.slack(values)

    def weights(self, values: Float[AnyArray, " m"], dual: Float[AnyArray, " c"]) -> Float[AnyArray, " m"]:
        """``r~_k = r_1 + sum_i lambda_{k,i} r_i``."""
        return self.criterion.ascent(values, dual)

    def update_dual(
        self, dual: Float[AnyArray, " c"], values: Float[AnyArray, " m"], new_values: Float[AnyArray, " m"]
    ) -> Float[AnyArray, " c"]:
        """Projected descent at ``V(pi_k)``."""
        return jnp.maximum(0.0, dual - self.dual_step * self.criterion.slack(values))
