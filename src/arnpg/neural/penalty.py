"""The anchor's KL inside the advantages: ``-alpha / (1-gamma) KL(pi || pi_k)`` as a reward of each step (Algorithm 1).

The regularised value is ``E sum_t gamma^t ( r_t - alpha l_t )`` with ``l_t = log(pi / pi_k)(a_t|s_t)``, whose mean over
the action is ``KL_t = KL(pi(.|s_t) || pi_k(.|s_t))``.  Its policy gradient has the advantage

    A_t = A_t[r] - alpha ( l_t - KL_t ) - alpha ( sum_{k>0} gamma^k KL_{t+k} - baseline ).

The first bracket is the score of the current action, the only part that acts where the discount is 0; the authors'
scripts enter ``-alpha KL_t`` as the reward and so leave it out.
"""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Float

from arnpg.errors import SettingsError

from .advantages import discounted_sums
from .networks import AbstractPolicy
from .rollout import Batch

__all__ = ["AnchorPenalty"]


class AnchorPenalty(eqx.Module):
    """The penalty of one batch.

    Arguments: ``alpha``, the regularisation; ``score``, whether the current action's score is in (the scripts: no).
    """

    alpha: float = 1.0
    score: bool = eqx.field(static=True, default=True)

    def __check_init__(self) -> None:
        if isinstance(self.alpha, int | float) and not 0 <= self.alpha < float("inf"):
            raise SettingsError(f"alpha must be a finite number >= 0, got {self.alpha}; the paper's runs use 1.")

    def __call__(
        self, policy: AbstractPolicy, anchor: AbstractPolicy, batch: Batch, discount: float
    ) -> tuple[Float[Array, "t b"], Float[Array, ""]]:
        """What to add to the advantages of the ascent reward, up to a constant, and the batch's mean KL to the anchor.

        The KL is that of the distribution, not of the action drawn: the same mean, less noise.
        """
        new, old = policy(batch.observations), anchor(batch.observations)
        kl = new.kl(old)
        future = discounted_sums(kl, discount * (~batch.over).astype(kl.dtype))
        if self.score:
            taken = new.log_prob(batch.actions) - old.log_prob(batch.actions)
            future = future - kl + (taken - kl)
        return -self.alpha * future, kl.mean()
