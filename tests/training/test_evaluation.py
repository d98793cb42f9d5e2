"""Fresh episodes: their statistics against NumPy, and an environment whose totals are known."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arnpg
from arnpg.envs.env import AbstractEnvironment, DiscreteActions, Objectives, named
from arnpg.errors import SettingsError
from arnpg.evaluation import Evaluation, Notion, evaluation, play
from arnpg.neural.networks import MLP, CategoricalPolicy
from arnpg.neural.values import Discounted, EpisodeTotal, PathTotal

LENGTH = 4


class Chain(AbstractEnvironment):
    """Counts its steps and ends after four of them; objectives: the action taken, and one a step."""

    objectives: Objectives = eqx.field(
        static=True, converter=named, default=(("taken", lambda t: t.action), ("time", lambda t: 1.0))
    )
    time_limit: int = eqx.field(static=True, default=10)
    observation_size: ClassVar[int] = 1
    actions: ClassVar[DiscreteActions] = DiscreteActions(2)

    def initial(self, key):
        return jnp.zeros((), jnp.float32)

    def observe(self, physics):
        return physics[None]

    def advance(self, physics, action, key):
        return physics + 1, physics + 1 >= LENGTH


def policy(logit):
    """Action 1 with probability ``1 / (1 + exp(-logit))`` everywhere."""
    return CategoricalPolicy(MLP((jnp.zeros((1, 2)),), (jnp.array([0.0, logit]),), jax.nn.relu))


def notion(value, steps=8):
    return Notion((value, value), steps, 0.5)


@pytest.mark.parametrize(
    ("value", "taken", "time", "length"),
    [
        (EpisodeTotal(), 4, 4, 4),
        (PathTotal(), 8, 8, 4),  # two episodes a path of eight steps
        (Discounted(), 1.875, 1.875, 4),  # 1 + 1/2 + 1/4 + 1/8
    ],
)
def test_totals_that_are_known(value, taken, time, length):
    """The most probable action is always 1; episodes of four steps and nothing after them."""
    totals, lengths = play(Chain(), policy(0.1), notion(value), 6, 0, deterministic=True)
    np.testing.assert_allclose(totals, np.tile([taken, time], (6, 1)), rtol=1e-6)
    if not isinstance(value, PathTotal):
        return
    np.testing.assert_allclose(lengths, length)


def test_drawn_actions_have_the_policys_probabilities():
    totals, _ = play(Chain(), policy(1.0), notion(EpisodeTotal()), 4000, 3, deterministic=False)
    chance = 1 / (1 + np.exp(-1.0))
    # a total is binomial; three deviations of the mean of 4,000
    assert abs(totals[:, 0].mean() - 4 * chance) < 3 * np.sqrt(4 * chance * (1 - chance) / 4000)
    assert abs(totals[:, 0].var() - 4 * chance * (1 - chance)) < 0.1


def test_statistics_are_numpys():
    policies = [policy(logit) for logit in (-1.0, 0.0, 2.0)]
    limits = np.array([[-1.0, 0.0]]), np.array([-2.0])  # taken <= 2
    found = evaluation(
        Chain(),
        policies,
        notion(EpisodeTotal()),
        episodes=50,
        seed=5,
        deterministic=False,
        labels=("taken <= 2",),
        limits=limits,
    )
    assert found.totals.shape == (3, 50, 2)
    taken = found.totals[..., 0]
    assert found.values["taken"].mean == pytest.approx(taken.mean())
    assert found.values["taken"].low <= taken.mean() <= found.values["taken"].high
    assert found.quantiles["taken"] == pytest.approx(tuple(np.quantile(taken, [0.05, 0.5, 0.95])))
    assert found.within["taken <= 2"] == pytest.approx((taken <= 2).mean())
    np.testing.assert_array_equal(found.kept, taken.mean(axis=1) <= 2)
    assert "3 policies, 50 episodes each, sampled actions" in found.summary()
    assert f"{(taken <= 2).mean():.0%} <= 2" in found.summary()


def test_of_one_policy_the_interval_is_over_episodes():
    totals = np.arange(20.0).reshape(1, 20, 1)
    found = Evaluation(("x",), (), totals, np.zeros((1, 20, 0)), np.ones((1, 20)), True)
    assert found.values["x"].mean == 9.5
    # the deviation of a mean of 20 is 1.29
    assert 2 < found.values["x"].high - found.values["x"].mean < 3


def test_the_same_seed_the_same_episodes_and_bad_input():
    chain, held = Chain(), notion(EpisodeTotal())
    first, again, other = (play(chain, policy(0.0), held, 20, seed, False)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    for episodes in (0, 2.5, True):
        with pytest.raises(SettingsError, match="episodes must be a whole number >= 1"):
            play(chain, policy(0.0), held, episodes, 0, False)
    with pytest.raises(SettingsError, match="policy must be a TrainedRun for an environment, got CategoricalPolicy"):
        arnpg.evaluate(chain, policy(0.0))
