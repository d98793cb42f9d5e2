"""Multi-objective NPG (Section 5, Appendix C): a step along the gradient, or a subgradient where ``F`` has a kink."""

from jaxtyping import Float

from arnpg.arrays import AnyArray
from arnpg.errors import ObjectiveError
from arnpg.inner_loop import AbstractMicroSteps
from arnpg.method import AbstractDualFreeMethod
from arnpg.objectives import Criterion

__all__ = ["MONPG"]


class MONPG(AbstractDualFreeMethod):
    """``G_k`` in the superdifferential of ``F`` at ``V(pi_k)``."""

    criterion: Criterion
    micro_steps: AbstractMicroSteps

    def __check_init__(self) -> None:
        """Any concave objective without constraints."""
        if len(self.criterion.thresholds):
            raise ObjectiveError("MO-NPG takes no constraints; try arnpg-epd, npg-pd or crpo.")

    def weights(self, values: Float[AnyArray, " m"], dual: Float[AnyArray, " 0"]) -> Float[AnyArray, " m"]:
        """A (sub)gradient."""
        return self.criterion.objective.gradient(values)
