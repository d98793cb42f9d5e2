"""What the ARNPG micro step needs of transitions, dense or by successor slot, as formulas that compile.

``expected`` is ``(P U)(s, a) = sum_t P(t | s, a) U(t)``, ``solve`` gives ``(I - gamma P_pi)^{-1} f`` for several ``f``
at once, and ``occupancy`` the solution of ``d = (1 - gamma) rho + gamma P_pi^T d``.
"""

import abc
from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.lax.linalg import triangular_solve
from jaxtyping import Array, Float, Int
from scipy import sparse

from arnpg.arrays import AnyArray, Scalar
from arnpg.tabular.krylov import occupancy_system, value_system
from arnpg.tabular.mdp import MDP
from arnpg.tabular.slots import SlotKernel

__all__ = ["AbstractTransitions", "DenseTransitions", "SlotTransitions", "transitions_of"]


class AbstractTransitions(eqx.Module):
    """``P``, wherever its entries are."""

    @abc.abstractmethod
    def expected(self, values: Float[AnyArray, " s"]) -> Float[AnyArray, "s a"]:
        """``P U`` for every state and action."""

    @abc.abstractmethod
    def solve(
        self, policy: Float[AnyArray, "s a"], discount: Scalar, right: Array, guess: Float[AnyArray, "s k"]
    ) -> Float[AnyArray, "s k"]:
        """``(I - gamma P_pi)^{-1} f`` for each column ``f``; ``guess`` is where the answers are thought to be."""

    @abc.abstractmethod
    def occupancy(
        self, policy: Float[AnyArray, "s a"], discount: Scalar, initial: Float[AnyArray, " s"]
    ) -> Float[AnyArray, " s"]:
        """``d(s)``, a distribution."""


@jax.custom_batching.sequential_vmap
def _solve(system: Float[Array, "s s"], right: Float[Array, "s k"]) -> Float[Array, "s k"]:
    """``A^{-1} b`` for ``A = I - gamma P_pi``, whose rows are strictly dominated by the diagonal.

    The transpose is factored: in ``A^T = L U`` partial pivoting never exchanges rows, so nobody need look at its
    pivots, and ``A = U^T L^T``. One LAPACK call for each member of a batch: batched calls in a loop have been seen to
    hang in XLA's CPU runtime, and are no quicker.
    """
    factors, _, _ = jax.lax.linalg.lu(system.T)
    half = triangular_solve(factors, right, left_side=True, lower=False, transpose_a=True)
    return triangular_solve(factors, half, left_side=True, lower=True, transpose_a=True, unit_diagonal=True)


@jax.custom_batching.sequential_vmap
def _solve_transposed(system: Float[Array, "s s"], right: Float[Array, "s k"]) -> Float[Array, "s k"]:
    """``A^{-T} b`` for the same ``A``."""
    factors, _, _ = jax.lax.linalg.lu(system.T)
    half = triangular_solve(factors, right, left_side=True, lower=True, unit_diagonal=True)
    return triangular_solve(factors, half, left_side=True, lower=False)


class DenseTransitions(AbstractTransitions):
    """``P`` as an array; policies are evaluated by LAPACK."""

    table: Float[AnyArray, "s a t"]

    def expected(self, values: Float[AnyArray, " s"]) -> Float[AnyArray, "s a"]:
        """One product."""
        return jnp.asarray(self.table) @ values

    def solve(
        self, policy: Float[AnyArray, "s a"], discount: Scalar, right: Array, guess: Float[AnyArray, "s k"]
    ) -> Float[AnyArray, "s k"]:
        """One factorisation for all columns."""
        del guess
        return _solve(self._system(policy, discount), right)

    def occupancy(
        self, policy: Float[AnyArray, "s a"], discount: Scalar, initial: Float[AnyArray, " s"]
    ) -> Float[AnyArray, " s"]:
        """One solve with the transpose."""
        start = (1 - discount) * jnp.asarray(initial)
        return _solve_transposed(self._system(policy, discount), start[:, None])[:, 0]

    def _system(self, policy: Float[AnyArray, "s a"], discount: Scalar) -> Float[AnyArray, "s s"]:
        under = jnp.einsum("sa,sat->st", policy, self.table)
        return jnp.eye(len(under)) - discount * under


class SlotTransitions(AbstractTransitions):
    """``P`` by successor slot, slots first; policies are evaluated by Krylov iterations, all columns at once."""

    successors: Int[AnyArray, "k s a"]
    chances: Float[AnyArray, "k s a"]

    def expected(self, values: Float[AnyArray, " s"]) -> Float[AnyArray, "s a"]:
        """A gather for each slot."""
        known = jnp.asarray(values)
        return self._summed(lambda t, p: p * known[t], jnp.zeros(self.chances.shape[1:]))

    def solve(
        self, policy: Float[AnyArray, "s a"], discount: Scalar, right: Array, guess: Float[AnyArray, "s k"]
    ) -> Float[AnyArray, "s k"]:
        """From the guess, until rounding ends the progress or the residual is negligible."""
        return value_system(partial(self._forward, policy), discount, right, guess)

    def occupancy(
        self, policy: Float[AnyArray, "s a"], discount: Scalar, initial: Float[AnyArray, " s"]
    ) -> Float[AnyArray, " s"]:
        """The same with the transpose."""
        start = jnp.asarray(initial)
        return occupancy_system(partial(self._backward, policy), discount, start)

    def _forward(self, policy: Float[AnyArray, "s a"], columns: Float[AnyArray, "s k"]) -> Float[AnyArray, "s k"]:
        """``P_pi x``."""
        nothing = jnp.zeros(columns.shape)
        return self._summed(lambda t, p: jnp.einsum("sa,sak->sk", policy * p, columns[t]), nothing)

    def _backward(self, policy: Float[AnyArray, "s a"], columns: Float[AnyArray, "s 1"]) -> Float[AnyArray, "s 1"]:
        """``P_pi^T x``."""
        visits, nothing = policy * columns, jnp.zeros(len(columns))
        return self._summed(lambda t, p: jnp.zeros(len(columns)).at[t].add(p * visits), nothing)[:, None]

    def _summed(self, term: Callable[[Array, Array], Array], nothing: Array) -> Array:
        """``sum_k term(successors_k, chances_k)``, a slot at a time: no array of all slots is made."""
        slots = (jnp.asarray(self.successors), jnp.asarray(self.chances))
        return jax.lax.scan(lambda total, slot: (total + term(*slot), None), nothing, slots)[0]


def transitions_of(mdp: MDP) -> AbstractTransitions:
    """The model's transitions in the form in which they were given."""
    if isinstance(mdp.transitions, np.ndarray):
        return DenseTransitions(mdp.transitions)
    successors, chances = SlotKernel(sparse.csr_array(mdp.transitions), mdp.actions, mdp.allowed).slots()
    return SlotTransitions(np.moveaxis(successors, 2, 0).copy(), np.moveaxis(chances, 2, 0).copy())
