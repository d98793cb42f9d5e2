"""What two runs must agree in."""

import jax
import numpy as np


def first_row(inner, policy):
    """Something to watch at each step."""
    del inner
    return policy.log_policy[0]


def arrays(run):
    """Everything that a run returns but its seconds."""
    leaves = jax.tree.leaves((run.trace, run.rows, run.last, run.best, run.mean, run.carry))
    return [np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf) for leaf in leaves]


def is_key(leaf):
    return hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def same(left, right):
    """Equal in every bit and every type."""
    for one, two in zip(arrays(left), arrays(right), strict=True):
        assert one.dtype == two.dtype
        assert one.shape == two.shape
        assert one.tobytes() == two.tobytes()
