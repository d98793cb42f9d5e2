"""ARNPG with extra primal-dual updates (Algorithm 3): constraints, with the violation predicted one step ahead."""

import jax.numpy as jnp
from jaxtyping import Float

from arnpg.arrays import AnyArray, ScalarOrEach
from arnpg.inner_loop import AbstractMicroSteps, require_positive
from arnpg.method import AbstractAnchorMethod, require_smooth_constrained
from arnpg.objectives import Criterion

__all__ = ["EPD"]


class EPD(AbstractAnchorMethod):
    """Yu and Neely's primal-dual method with its two additions: an extra violation term, and a floor for the dual.

    The objective is ``V_1`` in the paper; any smooth concave one goes with its gradient in the place of ``e_1``.
    ``dual_step`` is ``eta'``.
    """

    criterion: Criterion
    micro_steps: AbstractMicroSteps
    dual_step: ScalarOrEach

    def __check_init__(self) -> None:
        """A smooth objective under constraints."""
        require_smooth_constrained("ARNPG-EPD", self.criterion)
        require_positive("dual_step", self.dual_step)

    def initial_dual(self, values: Float[AnyArray, " m"]) -> Float[AnyArray, " c"]:
        """``lambda_0 = max(0, eta' (V(pi_0) - b))``."""
        return jnp.maximum(0.0, self.dual_step * self.criterion.slack(values))

    def weights(self, values: Float[AnyArray, " m"], dual: Float[AnyArray, " c"]) -> Float[AnyArray, " m"]:
        """``r~_k = r_1 + sum_i (lambda_{k,i} + eta' (b_i - V_i(pi_k))) r_i``."""
        return self.criterion.ascent(values, dual - self.dual_step * self.criterion.slack(values))

    def update_dual(
        self, dual: Float[AnyArray, " c"], values: Float[AnyArray, " m"], new_values: Float[AnyArray, " m"]
    ) -> Float[AnyArray, " c"]:
        """``lambda_{k+1} = max(eta' (V(pi_{k+1}) - b), lambda_k + eta' (b - V(pi_{k+1})))``."""
        slack = self.dual_step * self.criterion.slack(new_values)
        return jnp.maximum(slack, dual - slack)
