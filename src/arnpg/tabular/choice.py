"""Which kernel a model gets: the one place that decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arnpg.errors import SettingsError
from arnpg.tabular.dense import DenseKernel
from arnpg.tabular.kernel import AbstractKernel
from arnpg.tabular.mdp import MDP
from arnpg.tabular.sparse import SparseKernel

__all__ = ["kernel_of"]

SMALL = 150  # states up to which a sparse model is spread out: LAPACK is quicker there


def kernel_of(mdp: MDP, devices: Sequence[Any] | None = None) -> AbstractKernel:
    """Dense linear algebra for dense and for tiny models, sparse for the others; on ``devices`` where they are given.

    Raises:
        SettingsError: where a dense model is to be spread over devices.
    """
    if devices is not None:
        if not isinstance(devices, Sequence):
            raise SettingsError(f"devices must be a list of JAX devices, such as jax.devices(), got {devices!r}.")
        if not mdp.is_sparse:
            raise SettingsError("devices goes with sparse models; build this one with MDP.from_sparse.")
        return SparseKernel(mdp, devices)
    return SparseKernel(mdp) if mdp.is_sparse and mdp.states > SMALL else DenseKernel(mdp)
