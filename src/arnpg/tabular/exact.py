"""Algorithm 1 with exact gradients: regularised natural policy gradient on a known model, in closed form.

A policy is a table of log-probabilities with its value functions beside it: one linear solve after each micro step
gives all of them, and the next step, the evaluation and the anchor need nothing else. Dense and sparse models differ
in that solve alone (``arnpg.tabular.transitions``).
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from arnpg.arrays import AnyArray, Scalar
from arnpg.inner_loop import AbstractInnerLoop, InnerInfo, require_positive
from arnpg.tabular.mdp import MDP
from arnpg.tabular.transitions import AbstractTransitions, transitions_of

__all__ = ["EvaluatedPolicy", "ExactInnerLoop", "occupancy", "regularised_step"]


class EvaluatedPolicy(eqx.Module):
    """``log pi(a | s)``, normalised (logits would drift by a constant per state), and ``V_i^pi(s)``."""

    log_policy: Float[AnyArray, "s a"]
    state_values: Float[AnyArray, "m s"]


def regularised_step(
    log_policy: Float[AnyArray, "s a"],
    log_anchor: Float[AnyArray, "s a"],
    advantage: Float[AnyArray, "s a"],
    rate: Scalar,
    keep: Scalar,
) -> Float[AnyArray, "s a"]:
    """One NPG micro step under softmax (Algorithm 1, eq. 5, in closed form).

    ``log pi' = (1 - keep) log pi + keep log pi_k + rate * q - log Z`` with ``rate = eta / (1 - gamma)``,
    ``keep = eta alpha / (1 - gamma)`` and ``q = <G, r> + gamma P V~``: the anchor's part of ``Q~`` is taken out.
    """
    logits = log_policy + keep * (log_anchor - log_policy) + rate * advantage
    return jax.nn.log_softmax(logits, axis=-1)


class ExactInnerLoop(AbstractInnerLoop):
    """InnerLoop(r~, anchor, alpha, eta, t_k) on a known model.

    ``step_size`` is eta, ``regularisation`` alpha. The inner loop converges linearly for
    ``eta <= (1 - gamma) / alpha`` (Lemma 3); with equality a micro step is soft policy iteration from the anchor.
    """

    float64: ClassVar[bool] = True

    transitions: AbstractTransitions
    rewards: Float[AnyArray, "m s a"]
    initial: Float[AnyArray, " s"]
    discount: Scalar
    step_size: Scalar
    regularisation: Scalar

    def __init__(self, mdp: MDP, *, step_size: float, regularisation: float) -> None:
        """Take the model's arrays; both settings must be positive."""
        require_positive("step_size", step_size)
        require_positive("regularisation", regularisation)
        self.transitions, self.rewards, self.initial = transitions_of(mdp), mdp.rewards, mdp.initial
        self.discount, self.step_size, self.regularisation = mdp.discount, step_size, regularisation

    def start(self, key: PRNGKeyArray) -> tuple[EvaluatedPolicy, None]:
        """The uniform policy; nothing to carry."""
        del key
        states, actions = self.rewards.shape[1:]
        return self.evaluated(jnp.full((states, actions), -jnp.log(actions), float)), None

    def evaluated(self, log_policy: Float[AnyArray, "s a"]) -> EvaluatedPolicy:
        """A policy with its value functions."""
        unknown = jnp.zeros(self.rewards.shape[:2])
        return EvaluatedPolicy(log_policy, self._solve(log_policy, self.rewards, unknown))

    def improve(
        self, anchor: EvaluatedPolicy, weights: Float[AnyArray, " m"], micro_steps: int | Int[AnyArray, ""], work: None
    ) -> tuple[EvaluatedPolicy, None, InnerInfo]:
        """``t_k`` closed-form steps on ``V_rt - alpha D_{d^pi}(pi || anchor) / (1 - gamma)``."""

        def micro_step(_: Any, at: tuple[EvaluatedPolicy, Array]) -> tuple[EvaluatedPolicy, Array]:
            return self._micro_step(anchor.log_policy, weights, *at)

        start = (anchor, jnp.zeros_like(self.initial))
        if isinstance(micro_steps, int) and micro_steps == 1:
            policy, divergence = micro_step(0, start)
        else:
            policy, divergence = jax.lax.fori_loop(0, micro_steps, micro_step, start)
        probabilities = jnp.exp(policy.log_policy)
        entropy = -jnp.mean(jnp.sum(probabilities * policy.log_policy, axis=1))
        kl = (1 - self.discount) * self.initial @ divergence
        return policy, work, InnerInfo(kl, entropy, jnp.zeros((), int))

    def evaluate(self, policy: EvaluatedPolicy, work: None) -> tuple[Float[AnyArray, " m"], None]:
        """``V_{1:m}(rho)``, known already."""
        return policy.state_values @ self.initial, work

    def _micro_step(
        self, log_anchor: AnyArray, weights: AnyArray, policy: EvaluatedPolicy, divergence: Array
    ) -> tuple[EvaluatedPolicy, Array]:
        """``divergence`` is ``E[sum_t gamma^t log(pi / pi_k)]``, so that ``V~ = <G, V> - alpha * divergence``."""
        values = weights @ policy.state_values - self.regularisation * divergence
        advantage = jnp.tensordot(weights, self.rewards, 1) + self.discount * self.transitions.expected(values)
        rate = self.step_size / (1 - self.discount)
        log_policy = regularised_step(policy.log_policy, log_anchor, advantage, rate, rate * self.regularisation)
        tables = jnp.concatenate([self.rewards, (log_policy - log_anchor)[None]])
        solved = self._solve(log_policy, tables, jnp.concatenate([policy.state_values, divergence[None]]))
        return EvaluatedPolicy(log_policy, solved[:-1]), solved[-1]

    def _solve(
        self, log_policy: Float[AnyArray, "s a"], tables: Float[AnyArray, "k s a"], guess: Float[AnyArray, "k s"]
    ) -> Float[AnyArray, "k s"]:
        """``(I - gamma P_pi)^{-1} f_pi`` for each table ``f``."""
        policy = jnp.exp(log_policy)
        right = jnp.sum(policy[None] * tables, axis=2).T
        return self.transitions.solve(policy, self.discount, right, guess.T).T


def occupancy(inner: ExactInnerLoop, policy: EvaluatedPolicy) -> Float[AnyArray, "s a"]:
    """``d_rho^pi(s, a)``, the state-action visitation of Section 2; its mean over iterates is one policy's."""
    probabilities = jnp.exp(policy.log_policy)
    return inner.transitions.occupancy(probabilities, inner.discount, inner.initial)[:, None] * probabilities
