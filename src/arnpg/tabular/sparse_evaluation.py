"""Values and occupancies of one policy on a sparse model: ``(I - gamma P) V = R`` and its transpose.

Three solvers, in the order in which they are tried (``solver="auto"``), each measured to win somewhere:
* **sweeps**, ``x <- x + e``, with the mean of the residual ``e`` removed in closed form: the error then falls by
  ``gamma |lambda_2|`` a sweep, whatever the discount. Best on random graphs, where ``|lambda_2|`` is about one half;
* **Krylov** (BiCGSTAB), restarted from the true residual: best on lattices, about ``1 / sqrt(1 - gamma)`` products
  for each digit;
* **direct** (SuperLU, minimum degree): best on nearly planar models at discounts beyond .999. The width of a reverse
  Cuthill-McKee ordering says beforehand whether the factors would fit.

What is returned is measured, not believed: residuals are recomputed from the definition at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.linalg import get_blas_funcs
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from arnpg.errors import NumericalError
from arnpg.tabular.slots import AbstractChain, Chain

__all__ = ["Solved", "Solver", "occupancy", "solve_system"]

Solver = Literal["auto", "sweeps", "krylov", "direct"]
Vector = Float[np.ndarray, " s"]

_PROBE, _FAST_MIXING = 4, 0.8
_KRYLOV_PATIENCE = 800
_PIECE = 8192
_axpy, _inner = get_blas_funcs(("axpy", "dot"), dtype=np.float64)
_DIRECT_WORK = 1e10


class Solved(NamedTuple):
    """A solution, the norm of its true residual, the solver that ended it and the products it took."""

    solution: Vector
    residual: float
    solver: str
    products: int


@dataclass
class _System:
    """``(I - discount * P) x = right`` (or ``P^T``), with its product, its norm and what a constant shift does."""

    chain: AbstractChain
    discount: float
    right: Vector
    transposed: bool
    serial: bool
    products: int = 0

    def step(self, vector: Vector) -> Vector:
        """``discount * P x``."""
        self.products += 1
        result = (self.chain.backward if self.transposed else self.chain.forward)(vector, self.serial)
        result *= self.discount
        return result

    def apply(self, vector: Vector) -> Vector:
        """``x - discount * P x``."""
        return vector - self.step(vector)

    def residual(self, solution: Vector) -> Vector:
        """``right - (I - discount * P) x``, from the definition."""
        result = self.step(solution)
        result -= solution
        result += self.right
        return result

    def norm(self, residual: Vector) -> float:
        """Return the largest entry for values, the sum of moduli for occupancies."""
        return float(np.abs(residual).sum()) if self.transposed else float(max(residual.max(), -residual.min()))

    def spread(self, residual: Vector) -> float:
        """Measure what is left once ``centre`` has taken the constant out; to within a factor of two."""
        return self.norm(residual) if self.transposed else 0.5 * float(residual.max() - residual.min())

    def rounding(self, solution: Vector) -> float:
        """How exactly a residual can be known at this solution."""
        return float(np.finfo(float).eps * (self.chain.slots + 4) * (self.norm(solution) + self.norm(self.right)))

    def centre(self, solution: Vector, residual: Vector) -> None:
        """Take the constant out of the residual: rows sum to 1, so a constant ``c`` answers ``(1 - discount) c``."""
        if not self.transposed:
            mean = float(residual.mean())
            solution += mean / (1 - self.discount)
            residual -= mean


def _add(target: Vector, scale: float, vector: Vector) -> None:
    """``target += scale * vector``, in pieces: BLAS would wake threads for long vectors, ruinous on a busy machine."""
    for start in range(0, len(target), _PIECE):
        _axpy(vector, target, n=min(_PIECE, len(target) - start), a=scale, offx=start, offy=start)


def _dot(left: Vector, right: Vector) -> float:
    """``<left, right>``, in pieces as in ``_add``."""
    n = len(left)
    return sum(_inner(left, right, n=min(_PIECE, n - i), offx=i, offy=i) for i in range(0, n, _PIECE))


def solve_system(
    chain: AbstractChain,
    discount: float,
    right: Vector,
    *,
    guess: Vector | None = None,
    residual: Vector | None = None,
    tolerance: float = 1e-10,
    transposed: bool = False,
    solver: Solver = "auto",
    serial: bool = False,
) -> Solved:
    """Solve ``(I - discount * P) x = right`` until the residual's norm is at most ``tolerance``, or rounding's limit.

    The norm is the largest entry, and for ``transposed`` systems the sum of moduli. ``residual`` is that of the guess,
    where it is known; ``serial`` leaves the other cores to other columns. Raises ``NumericalError`` otherwise.
    """
    system = _System(chain, discount, right, transposed, serial)
    solution = np.zeros(len(right)) if guess is None else np.array(guess, np.float64)
    order = ("sweeps", "krylov", "direct") if solver == "auto" else (solver,)
    residual = system.residual(solution) if residual is None else residual
    for name in (*order, "krylov!", "sweeps!"):
        goal = max(tolerance, 2 * system.rounding(solution))
        if system.norm(residual) <= goal:
            return Solved(solution, system.norm(residual), "guess", system.products)
        candidate = _SOLVERS[name](system, solution.copy(), residual.copy(), goal)
        fresh = system.residual(candidate)
        if system.norm(fresh) < system.norm(residual):
            solution, residual = candidate, fresh
        goal = max(tolerance, 2 * system.rounding(solution))
        if system.norm(residual) <= goal:
            return Solved(solution, system.norm(residual), name.strip("!"), system.products)
    reached = f"residual {system.norm(residual):.1e} (asked for {tolerance:.1e}) at discount {discount}"
    raise NumericalError(f"the evaluation of a policy stopped at {reached}; raise the tolerance or lower the discount")


def _sweeps(system: _System, x: Vector, e: Vector, goal: float, slowest: float) -> Vector:
    """Shifted sweeps while each takes ``1 - slowest`` off the residual; with 1, to the end: they contract."""
    limit = int(np.log(1e-18) / np.log(system.discount)) + 10 if system.discount > 0 else 2
    history = [system.spread(e)]
    while history[-1] > goal / 2 and len(history) <= limit:
        _add(x, 1.0, e)
        e = system.step(e)
        history.append(system.spread(e))
        if slowest < 1 and len(history) > _PROBE and history[-1] > history[-1 - _PROBE] * slowest**_PROBE:
            break
    system.centre(x, e)
    return x


def _krylov(system: _System, x: Vector, e: Vector, goal: float, patience: int) -> Vector:
    """BiCGSTAB in rounds, each from the true residual, while a round at least halves it."""
    first = system.products
    norm = system.norm(e)
    while system.products - first < patience:
        system.centre(x, e)
        candidate = _bicgstab(system, x.copy(), e, goal / 2, first + patience)
        fresh = system.residual(candidate)
        reached = system.norm(fresh)
        if not reached < norm:
            break
        x, e = candidate, fresh
        if reached <= goal or reached > norm / 2:
            break
        norm = reached
    return x


def _bicgstab(system: _System, x: Vector, e: Vector, goal: float, most_products: int) -> Vector:
    """Van der Vorst's BiCGSTAB from residual ``e``; stops before it would divide by nothing."""
    shadow, direction = e.copy(), e.copy()
    rho = _dot(e, e)
    smallest = np.finfo(float).eps ** 2
    while system.products < most_products:
        image = system.apply(direction)
        angle = _dot(shadow, image)
        if abs(angle) <= smallest * abs(rho):
            break
        step = rho / angle
        _add(x, step, direction)
        _add(e, -step, image)
        half = system.apply(e)
        length = _dot(half, half)
        if length == 0.0:
            break
        omega = _dot(half, e) / length
        _add(x, omega, e)
        _add(e, -omega, half)
        before, rho = rho, _dot(shadow, e)
        if system.norm(e) <= goal or not np.isfinite(rho) or rho == 0.0 or omega == 0.0:
            break
        _add(direction, -omega, image)
        direction *= rho / before * step / omega
        direction += e
    return x


def _direct(system: _System, x: Vector, e: Vector, goal: float) -> Vector:
    """Sparse factors and a step of refinement; leaves the guess alone where they would not fit, or are elsewhere."""
    if not isinstance(system.chain, Chain) or not _factors_fit(system.chain.matrix):
        return x
    matrix = system.chain.matrix
    shifted = sparse.csc_array(sparse.eye_array(len(x), format="csr") - system.discount * matrix)
    # Rows are diagonally dominant, so pivots stay on the diagonal and the ordering may be symmetric.
    factors = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    kind = "T" if system.transposed else "N"
    for _ in range(2):
        x = x + factors.solve(e, kind)
        e = system.residual(x)
        if system.norm(e) <= goal:
            break
    return x


def _factors_fit(matrix: sparse.csr_array) -> bool:
    """Whether the graph is narrow: nearly planar (width below ``4 sqrt(S)``) or small enough for any width."""
    n_states = len(matrix.indptr) - 1
    if n_states**3 <= _DIRECT_WORK:
        return True
    order = reverse_cuthill_mckee(sparse.csr_matrix(matrix), symmetric_mode=False)
    place = np.empty(n_states, np.int64)
    place[order] = np.arange(n_states)
    rows = np.repeat(place, np.diff(matrix.indptr))
    width = int(np.quantile(np.abs(rows - place[matrix.indices]), 0.99)) if matrix.nnz else 0
    return width**2 <= 16 * n_states or n_states * float(width) ** 2 <= _DIRECT_WORK


_SOLVERS: dict[str, Callable[[_System, Vector, Vector, float], Vector]] = {
    "sweeps": partial(_sweeps, slowest=_FAST_MIXING),
    "krylov": partial(_krylov, patience=_KRYLOV_PATIENCE),
    "direct": _direct,
    "krylov!": partial(_krylov, patience=50 * _KRYLOV_PATIENCE),
    "sweeps!": partial(_sweeps, slowest=1.0),
}


def occupancy(
    chain: AbstractChain,
    discount: float,
    initial: Vector,
    *,
    guess: Vector | None = None,
    tolerance: float = 1e-11,
    solver: Solver = "auto",
) -> Solved:
    """Solve for the discounted occupancy ``d = (1 - discount) rho + discount * P^T d``, a distribution over states.

    ``<d, r> / (1 - discount)`` is the value of every reward at once; it errs by at most
    ``residual * max|r| / (1 - discount)^2``.
    """
    start = initial if guess is None else guess * (initial.sum() / guess.sum())
    right = (1 - discount) * initial
    return solve_system(chain, discount, right, guess=start, tolerance=tolerance, transposed=True, solver=solver)
