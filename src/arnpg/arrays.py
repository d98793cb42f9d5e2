"""The arrays that formulas take: JAX inside compiled code, NumPy on the host."""

from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float

__all__ = ["AnyArray", "Scalar", "ScalarOrEach"]

if TYPE_CHECKING:
    AnyArray = Any  # the two share no static type, and every formula takes either
else:
    AnyArray = jax.Array | np.ndarray
Scalar = float | Float[AnyArray, ""]
ScalarOrEach = Scalar | Float[AnyArray, " c"]  # one number, or one for each constraint
