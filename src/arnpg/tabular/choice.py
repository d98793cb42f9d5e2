"""Which kernel a model gets: the one place that decides."""

from __future__ import annotations

from arnpg.tabular.dense import DenseKernel
from arnpg.tabular.kernel import AbstractKernel
from arnpg.tabular.mdp import MDP
from arnpg.tabular.sparse import SparseKernel

__all__ = ["kernel_of"]

SMALL = 150  # states up to which a sparse model is spread out: LAPACK is quicker there


def kernel_of(mdp: MDP) -> AbstractKernel:
    """Dense linear algebra for dense and for tiny models, sparse for the others."""
    return SparseKernel(mdp) if mdp.is_sparse and mdp.states > SMALL else DenseKernel(mdp)
