"""The constants of Theorems 1-3: settings under which each rate is proved, and the rate.

They hold for rewards in ``[0, 1]``. They are conservative by orders of magnitude; the recipes' defaults are what the
paper's experiments use.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from arnpg.inner_loop import TheoremMicroSteps

__all__ = ["Guarantee", "theorem_1", "theorem_2", "theorem_3", "violation_bound"]


class Guarantee(NamedTuple):
    """Settings for ``K`` macro steps, and the bound of the average gap that they imply."""

    step_size: float
    regularisation: float
    dual_step: float
    micro_steps: TheoremMicroSteps
    gap_bound: float


def theorem_1(
    discount: float, actions: int, steps: int, *, smoothness: float, gradient_bound: float
) -> Guarantee:
    """ARNPG-IMD: ``F* - mean F(V(pi_k)) <= 2 alpha log|A| / ((1 - gamma) K)``.

    ``smoothness`` is ``beta`` for the supremum norm, ``gradient_bound`` is ``L >= |grad F|_1``.
    """
    alpha = smoothness / (1 - discount) ** 3
    scale = 5 * steps / (smoothness * math.log(actions))
    rule = TheoremMicroSteps(discount, gradient_bound, 0.0, scale)
    bound = 2 * alpha * math.log(actions) / ((1 - discount) * steps)
    return Guarantee((1 - discount) / alpha, alpha, 0.0, rule, bound)


def theorem_2(discount: float, actions: int, steps: int, *, objectives: int, dual_step: float = 1.0) -> Guarantee:
    """ARNPG-EPD: ``V_1* - mean V_1(pi_k) <= 3 alpha log|A| / ((1 - gamma) K)``, for ``eta'`` in ``(0, 1]``."""
    alpha = 2 * dual_step * objectives / (1 - discount) ** 3
    scale = 5 * steps / (2 * dual_step * objectives * math.log(actions))
    base = 1 + dual_step * (objectives - 1) / (1 - discount)
    rule = TheoremMicroSteps(discount, base, 1.0, scale)
    bound = 3 * alpha * math.log(actions) / ((1 - discount) * steps)
    return Guarantee((1 - discount) / alpha, alpha, dual_step, rule, bound)


def violation_bound(guarantee: Guarantee, discount: float, actions: int, steps: int, multiplier_norm: float) -> float:
    """Theorem 2: ``b_i - mean V_i(pi_k) <= (2 |lambda*|_2 / eta' + 3 sqrt(alpha log|A| / ((1 - gamma) eta'))) / K``."""
    eta = guarantee.dual_step
    root = math.sqrt(guarantee.regularisation * math.log(actions) / ((1 - discount) * eta))
    return (2 * multiplier_norm / eta + 3 * root) / steps


def theorem_3(
    discount: float, actions: int, steps: int, *, objectives: int, smoothness: float, gradient_bound: float
) -> Guarantee:
    """ARNPG-OMDA: ``F* - F(mean V(pi~_k)) <= 3 alpha log|A| / ((1 - gamma) K) + log m / (eta' K)``.

    ``alpha = 6 beta / (1 - gamma)^3`` as the theorem states (the lemma under it prints the fourth power, which its
    proof does not need), ``eta' = 1 / (6 beta)``.
    """
    alpha = 6 * smoothness / (1 - discount) ** 3
    dual_step = 1 / (6 * smoothness)
    scale = 5 * steps / (6 * smoothness * math.log(actions))
    rule = TheoremMicroSteps(discount, gradient_bound, 0.0, scale)
    bound = 3 * alpha * math.log(actions) / ((1 - discount) * steps) + math.log(objectives) / (dual_step * steps)
    return Guarantee((1 - discount) / alpha, alpha, dual_step, rule, bound)
