"""ARNPG with implicit mirror descent (Algorithm 2): a smooth concave objective, its gradient as ascent weights."""

from jaxtyping import Float

from arnpg.arrays import AnyArray
from arnpg.errors import ObjectiveError
from arnpg.inner_loop import AbstractMicroSteps
from arnpg.method import AbstractDualFreeMethod
from arnpg.objectives import Criterion

__all__ = ["IMD"]


class IMD(AbstractDualFreeMethod):
    """``G_k = grad F(V(pi_k))``; no dual variables (Theorem 1)."""

    criterion: Criterion
    micro_steps: AbstractMicroSteps

    def __check_init__(self) -> None:
        """A smooth objective without constraints."""
        if not self.criterion.objective.smooth or len(self.criterion.thresholds):
            raise ObjectiveError("ARNPG-IMD takes a smooth objective without constraints; try arnpg-epd or arnpg-omda.")

    def weights(self, values: Float[AnyArray, " m"], dual: Float[AnyArray, " 0"]) -> Float[AnyArray, " m"]:
        """``G_k = grad F(V(pi_k))``."""
        return self.criterion.objective.gradient(values)
