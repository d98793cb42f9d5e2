"""Laws of the hidden convexity: lemmas on visitations and values (Appendix B, C)."""

import exactly
import numpy as np
import pytest


@pytest.mark.parametrize("seed", range(5))
def test_distance_of_visitations_and_of_values(small_mdp, seed):
    """Lemma 2 (all four divergences) and Lemma 3 of the appendix."""
    draws = np.random.default_rng(seed)
    gamma = small_mdp.discount
    for _ in range(40):
        old = exactly.random_policy(draws, small_mdp, 0.5)
        new = old if draws.uniform() < 0.1 else exactly.random_policy(draws, small_mdp, 0.5)
        apart = np.abs(exactly.occupancy(small_mdp, new) - exactly.occupancy(small_mdp, old)).sum()
        least = min(
            exactly.divergence(small_mdp, at, one, two)
            for at in (old, new)
            for one, two in ((old, new), (new, old))
        )
        assert apart <= gamma * np.sqrt(2 * least) / (1 - gamma) + 1e-12
        change = np.abs(exactly.values(small_mdp, new) - exactly.values(small_mdp, old)).max()
        reach = gamma**2 / (1 - gamma) ** 4 * exactly.divergence(small_mdp, new, new, old)
        assert 0.5 * change**2 <= reach + 1e-12


def test_divergence_is_a_bregman_divergence_of_visitations(small_mdp):
    """Lemma 4: ``D_{d^pi}(pi || pi') = B_h(d^pi || d^pi')`` with ``h`` the conditional negative entropy."""
    draws = np.random.default_rng(9)

    def potential(joint):
        return (joint * np.log(joint)).sum() - (joint.sum(1) * np.log(joint.sum(1))).sum()

    for _ in range(50):
        one, two = exactly.random_policy(draws, small_mdp), exactly.random_policy(draws, small_mdp)
        first, second = exactly.occupancy(small_mdp, one), exactly.occupancy(small_mdp, two)
        slope = np.log(second) - np.log(second.sum(axis=1, keepdims=True))
        bregman = potential(first) - potential(second) - (slope * (first - second)).sum()
        assert bregman == pytest.approx(exactly.divergence(small_mdp, one, one, two), abs=1e-13)


def test_achievable_values_are_convex(small_mdp):
    """The policy of mean occupancies attains the mean of the values: one policy in the place of a random one."""
    draws = np.random.default_rng(11)
    policies = [exactly.random_policy(draws, small_mdp, 0.3) for _ in range(4)]
    joint = np.mean([exactly.occupancy(small_mdp, policy) for policy in policies], axis=0)
    mean = np.mean([exactly.values(small_mdp, policy) for policy in policies], axis=0)
    np.testing.assert_allclose(exactly.values(small_mdp, joint / joint.sum(1, keepdims=True)), mean, rtol=1e-13)
