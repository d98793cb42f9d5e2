"""ARNPG-EPD for noisy values: an integral that cannot wind up, a gain of its own for the violation, a margin.

Not in the paper. EPD (Algorithm 3) weighs a constraint by ``lambda_k + eta' (b - V(pi_k))``: an integral and, with the
same small gain, a proportional term. Where values start far from the limits, as on Acrobot, the integral winds up and
needs most of a run to unwind; where they are estimated from a few paths, half of all runs end above a limit that they
keep in the mean. Three additions, each of which can be turned off:

* the proportional gain ``damping`` is separate and larger, so that the weight answers at once;
* the integral sees no slack beyond ``clip`` times its limit, so that a far start does not wind it up;
* both terms aim at limits tightened by ``margin``.
"""

import jax.numpy as jnp
from jaxtyping import Float

from arnpg.arrays import AnyArray, Scalar, ScalarOrEach
from arnpg.errors import SettingsError
from arnpg.inner_loop import AbstractMicroSteps, require_positive
from arnpg.method import AbstractAnchorMethod, require_smooth_constrained
from arnpg.objectives import Criterion

__all__ = ["SteadyEPD"]


class SteadyEPD(AbstractAnchorMethod):
    """``s = C v - b - margin |b|``; the weights of the constraints are ``max(0, lambda - damping s)``.

    ``dual_step`` is ``eta'``, ``damping`` in the same unit; ``margin`` and ``clip`` are relative to ``scale``;
    without one to each limit, and then a limit of 0 has neither.
    """

    criterion: Criterion
    micro_steps: AbstractMicroSteps
    dual_step: ScalarOrEach
    damping: Scalar
    margin: Scalar
    clip: Scalar
    scale: ScalarOrEach | None = None

    def __check_init__(self) -> None:
        """A smooth objective under constraints."""
        require_smooth_constrained("ARNPG-EPD", self.criterion)
        for name in ("dual_step", "damping", "clip", *(["scale"] if self.scale is not None else [])):
            require_positive(name, getattr(self, name))
        if isinstance(self.margin, int | float) and not 0 <= self.margin < 1:
            raise SettingsError(f"margin must lie in [0, 1), got {self.margin}; .1 keeps a tenth of each limit free.")

    def initial_dual(self, values: Float[AnyArray, " m"]) -> Float[AnyArray, " c"]:
        """``lambda_0 = 0``."""
        return 0 * self._slack(values)

    def weights(self, values: Float[AnyArray, " m"], dual: Float[AnyArray, " c"]) -> Float[AnyArray, " m"]:
        """``r~_k = r_1 + sum_i max(0, lambda_{k,i} - damping s_i) r_i``."""
        return self.criterion.ascent(values, jnp.maximum(0.0, dual - self.damping * self._slack(values)))

    def update_dual(
        self, dual: Float[AnyArray, " c"], values: Float[AnyArray, " m"], new_values: Float[AnyArray, " m"]
    ) -> Float[AnyArray, " c"]:
        """``lambda_{k+1} = max(0, lambda_k - eta' clip(s, -+ clip |b|))``."""
        sizes = self._sizes()
        most = jnp.where(sizes > 0, self.clip * jnp.where(sizes > 0, sizes, 1.0), jnp.inf)
        return jnp.maximum(0.0, dual - self.dual_step * jnp.clip(self._slack(new_values), -most, most))

    def _slack(self, values: Float[AnyArray, " m"]) -> Float[AnyArray, " c"]:
        return self.criterion.slack(values) - self.margin * self._sizes()

    def _sizes(self) -> Float[AnyArray, " c"]:
        limits = jnp.abs(jnp.asarray(self.criterion.thresholds))
        return limits if self.scale is None else jnp.broadcast_to(jnp.asarray(self.scale), limits.shape)
