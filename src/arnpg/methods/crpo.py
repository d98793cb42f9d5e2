"""CRPO (Xu et al. 2021): ascend the objective while all constraints hold within a tolerance, else the worst one."""

import jax.numpy as jnp
from jaxtyping import Float

from arnpg.arrays import AnyArray, Scalar
from arnpg.inner_loop import AbstractMicroSteps, require_positive
from arnpg.method import AbstractDualFreeMethod, require_smooth_constrained
from arnpg.objectives import Criterion

__all__ = ["CRPO"]


class CRPO(AbstractDualFreeMethod):
    """``G_k = grad F`` where ``max_i (b - V(pi_k))_i <= tolerance``, else the row of the largest violation."""

    criterion: Criterion
    micro_steps: AbstractMicroSteps
    tolerance: Scalar

    def __check_init__(self) -> None:
        """A smooth objective under constraints."""
        require_smooth_constrained("CRPO", self.criterion)
        require_positive("tolerance", self.tolerance)

    def weights(self, values: Float[AnyArray, " m"], dual: Float[AnyArray, " 0"]) -> Float[AnyArray, " m"]:
        """The objective's gradient, or one constraint's row."""
        slack = self.criterion.slack(values)
        repair = jnp.asarray(self.criterion.rows)[jnp.argmin(slack)]
        return jnp.where(jnp.min(slack) >= -self.tolerance, self.criterion.objective.gradient(values), repair)
