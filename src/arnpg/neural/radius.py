"""A trust region whose size follows from how many constraints are broken (CRPO on Acrobot, Section 5.3)."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Float, PRNGKeyArray

from arnpg.arrays import AnyArray, Scalar
from arnpg.errors import SettingsError
from arnpg.objectives import Criterion

from .natural_gradient import TrustRegion
from .networks import AbstractPolicy
from .update import AbstractUpdate, Samples, UpdateInfo, UpdateState

__all__ = ["ByViolations"]


class ByViolations(AbstractUpdate):
    """``max_kl[n]`` where the policy's batch breaks ``n`` constraints by more than ``tolerance``.

    The scripts look at the batch before; here it is the batch that the step is taken on.
    """

    update: TrustRegion
    criterion: Criterion
    tolerance: Scalar
    max_kl: Float[AnyArray, " n"]

    def __check_init__(self) -> None:
        """One limit for each count, from none broken to all."""
        wanted = len(self.criterion.thresholds) + 1
        if self.max_kl.shape != (wanted,):
            raise SettingsError(
                f"max_kl must hold one limit for each number of broken constraints, 0 to {wanted - 1}, got "
                f"{self.max_kl.shape[0]}; give {wanted}."
            )

    def start(self, policy: AbstractPolicy) -> UpdateState:
        """As the trust region's."""
        return self.update.start(policy)

    def __call__(
        self,
        policy: AbstractPolicy,
        anchor: AbstractPolicy,
        state: UpdateState,
        samples: Samples,
        discount: float,
        key: PRNGKeyArray,
    ) -> tuple[AbstractPolicy, UpdateState, UpdateInfo]:
        """One step of the trust region's own kind."""
        broken = (self.criterion.slack(samples.values) < -self.tolerance).sum()
        update = eqx.tree_at(lambda u: u.max_kl, self.update, jnp.asarray(self.max_kl, jnp.float32)[broken])
        return update(policy, anchor, state, samples, discount, key)
