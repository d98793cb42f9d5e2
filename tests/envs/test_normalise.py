"""Running statistics against those of all rows at once."""

import jax
import numpy as np
import pytest

from arnpg.envs.normalise import ReturnScale, RunningStatistics
from arnpg.errors import SettingsError
from arnpg.runs.checkpoint import Checkpoints


def test_batches_of_any_size_add_up_to_the_whole():
    rng = np.random.default_rng(0)
    rows = rng.normal([0, 1e4, -3], [1, 1e-2, 100], (5000, 3))
    statistics, old = RunningStatistics.start(3), []
    for part in np.split(rows, [1, 2, 2, 40, 1000, 4999]):
        old.append((statistics, [x.copy() for x in statistics]))
        statistics = statistics.update(part)
    assert statistics.count == 5000
    np.testing.assert_allclose(statistics.mean, rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(statistics.variance, rows.var(axis=0), rtol=1e-9)  # 1e4 +- 1e-2 costs six digits
    for before, copies in old:
        for array, copy in zip(before, copies, strict=True):
            np.testing.assert_array_equal(array, copy)


def test_normalised_observations():
    rng = np.random.default_rng(1)
    rows = rng.normal(3, 2, (40, 50, 2)).astype(np.float32)
    rows[..., 1] = 7
    statistics = RunningStatistics.start(2).update(rows)
    found = statistics.normalise(rows)
    assert found.dtype == np.float32
    assert found.shape == rows.shape
    np.testing.assert_allclose(found[..., 0].std(), 1, atol=1e-6)
    np.testing.assert_array_equal(found[..., 1], 0)  # what never changes says nothing
    np.testing.assert_array_equal(statistics.normalise(np.array([1e9, -1e9])), [5, -5])
    np.testing.assert_array_equal(statistics.normalise(np.array([1e9, 7.0]), clip=2.0), [2, 0])


def test_before_anything_was_seen_observations_are_themselves():
    statistics = RunningStatistics.start(2)
    np.testing.assert_allclose(statistics.normalise(np.array([0.5, -2.0])), [0.5, -2.0], rtol=1e-7)
    assert statistics.update(np.zeros((0, 2))) is statistics
    with pytest.raises(SettingsError, match="size must be at least 1, got 0"):
        RunningStatistics.start(0)


def test_rewards_are_scaled_by_the_spread_of_discounted_sums():
    rng = np.random.default_rng(2)
    rewards, over = rng.normal(1, 1, (200, 3, 2)) * [1, 50], rng.uniform(size=(200, 3)) < 0.1
    scale, sums, seen = ReturnScale.start(3, 2), np.zeros((3, 2)), []
    for reward, end in zip(rewards, over, strict=True):
        scale = scale.update(reward, end, 0.9)
        sums = 0.9 * sums + reward
        seen.append(sums.copy())
        sums[end] = 0
    spread = np.concatenate(seen).std(axis=0)
    np.testing.assert_allclose(scale.normalise(rewards[0], clip=1e9), rewards[0] / spread, rtol=1e-5)
    assert np.abs(scale.normalise(np.full((3, 2), 1e9))).max() == 5


def test_saved_and_restored_as_a_pytree(tmp_path):
    statistics = RunningStatistics.start(3).update(np.random.default_rng(3).normal(size=(17, 3)))
    scale = ReturnScale.start(2, 1).update(np.ones((2, 1)), np.zeros(2, bool), 0.9)
    kept = Checkpoints(tmp_path, "hash")
    kept.save(1, (statistics, scale), {})
    found = kept.latest((RunningStatistics.start(3), ReturnScale.start(2, 1)))
    assert found is not None
    for a, b in zip(jax.tree.leaves(found.tree), jax.tree.leaves((statistics, scale)), strict=True):
        assert np.asarray(a).dtype == np.float64
        np.testing.assert_array_equal(a, b)
    assert isinstance(found.tree[0], RunningStatistics)
