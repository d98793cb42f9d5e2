"""The arrays that formulas take: JAX inside compiled code, NumPy on the host."""

import jax
import numpy as np
from jaxtyping import Float

__all__ = ["AnyArray", "Scalar"]

AnyArray = jax.Array | np.ndarray
Scalar = float | Float[AnyArray, ""]
