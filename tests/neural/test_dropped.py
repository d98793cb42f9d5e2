"""Rows that are no steps, against plain Python on the rows that were played; and that their content never matters."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from host_environments import Fragile, Walk

import arnpg
from arnpg.envs import make_host
from arnpg.neural.advantages import GeneralisedAdvantages, MonteCarlo, path_values
from arnpg.neural.dropped import cut_before, mean_length, mean_of_rows, replaced, value_means
from arnpg.neural.host_inner_loop import HostInnerLoop
from arnpg.neural.networks import Critics, Network
from arnpg.neural.proximal import Passes
from arnpg.neural.rollout import Batch, Rollout
from arnpg.neural.values import Discounted, EpisodeTotal, PathTotal

STEPS, PATHS, DISCOUNT, KEY = 12, 5, 0.9, jax.random.key(1)
# path: steps at which an episode is lost; in the middle, at once, just after an end, twice in a row, in the last step
DROPPED = {0: [4], 1: [0], 2: [6], 3: [8, 9], 4: [11]}
ENDED = {2: [5], 3: [3], 4: [2]}  # by themselves
CUT = {3: [6], 4: [7]}  # by a limit


def marks(places):
    found = np.zeros((STEPS, PATHS), bool)
    for path, steps in places.items():
        found[steps, path] = True
    return jnp.asarray(found)


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(0)
    observations, following = rng.normal(size=(2, STEPS, PATHS, 2))
    dropped, over = marks(DROPPED), marks(ENDED) | marks(CUT) | marks(DROPPED)
    joined = ~np.asarray(over)[:-1]
    following[:-1][joined] = observations[1:][joined]
    rewards = np.where(dropped[..., None], 0, rng.normal(size=(STEPS, PATHS, 2)))
    following = np.where(dropped[..., None], observations, following)
    arrays = (observations, rng.normal(size=(STEPS, PATHS, 1)), rewards, following)
    return Batch(*(jnp.asarray(x, jnp.float32) for x in arrays), marks(ENDED), marks(CUT) | dropped, dropped)


@pytest.fixture(scope="module")
def critics():
    return Critics.build(jax.random.key(0), Network((6,)), 2, 2)


def episodes(batch, path):
    """The rows of each episode that were played, how it ended, and whether it was lost; in plain Python."""
    found, rows = [], []
    for t in range(STEPS):
        if batch.dropped[t, path]:
            found.append((rows, False, True))
            rows = []
            continue
        rows.append(t)
        if batch.over[t, path]:
            found.append((rows, bool(batch.terminated[t, path]), False))
            rows = []
    return [*found, (rows, False, False)] if rows else found


@pytest.mark.parametrize("decay", [0.5, 1.0])
def test_advantages_are_those_of_the_rows_that_were_played(batch, critics, decay):
    cut = cut_before(batch)
    values, bootstrap = path_values(critics, cut, STEPS)
    part = MonteCarlo() if decay == 1 else GeneralisedAdvantages(decay)
    advantages, targets = part(cut, values, bootstrap, DISCOUNT)
    played = 0
    for path in range(PATHS):
        for rows, terminated, _ in episodes(batch, path):
            later = np.zeros(2)
            for t in reversed(rows):
                value = 0 if terminated and t == rows[-1] else critics(batch.next_observations[t, path])
                here = np.asarray(critics(batch.observations[t, path]))
                later = np.asarray(batch.rewards[t, path] + DISCOUNT * value) - here + DISCOUNT * decay * later
                np.testing.assert_allclose(advantages[t, path], later, atol=1e-5)
                np.testing.assert_allclose(targets[t, path], later + here, atol=1e-5)
                played += 1
    assert played == STEPS * PATHS - 6


def test_values_and_lengths_are_those_of_episodes_that_were_not_lost(batch, critics):
    _, bootstrap = path_values(critics, cut_before(batch), STEPS)
    firsts = [episodes(batch, path)[0] for path in range(PATHS)]
    kept = [(path, rows) for path, (rows, _, lost) in enumerate(firsts) if not lost]
    assert [path for path, _ in kept] == [2, 3, 4]
    totals = [np.asarray(batch.rewards)[rows, path].sum(axis=0) for path, rows in kept]
    discounted = [sum(0.5**k * batch.rewards[t, path, 1] for k, t in enumerate(rows)) for path, rows in kept]
    found = value_means((EpisodeTotal(), Discounted(0.5)), bootstrap, batch, DISCOUNT)
    np.testing.assert_allclose(found, [np.mean(totals, axis=0)[0], np.mean(discounted)], atol=1e-5)
    np.testing.assert_allclose(mean_length(batch), np.mean([len(rows) for _, rows in kept]), rtol=1e-6)
    whole = eqx.tree_at(lambda b: b.dropped, batch, batch.dropped.at[:, 2].set(False))
    np.testing.assert_allclose(
        value_means(PathTotal(), bootstrap, whole, DISCOUNT), whole.rewards[:, 2].sum(axis=0), atol=1e-5
    )
    numbers = jnp.arange(float(STEPS * PATHS)).reshape(STEPS, PATHS)
    np.testing.assert_allclose(mean_of_rows(batch, numbers), np.asarray(numbers)[~np.asarray(batch.dropped)].mean())


def test_a_dropped_row_is_replaced_by_one_that_was_played(batch):
    numbers = jnp.arange(STEPS * PATHS).reshape(STEPS, PATHS)
    found, seen = replaced(batch, KEY, (numbers, batch.observations))
    dropped = np.asarray(batch.dropped)
    np.testing.assert_array_equal(found[~dropped], numbers[~dropped])
    assert not set(np.asarray(found)[dropped].tolist()) & set(np.asarray(numbers)[dropped].tolist())
    np.testing.assert_array_equal(seen, batch.observations.reshape(-1, 2)[found])


@pytest.mark.parametrize("settings", [{}, {"update": Passes(minibatch=20)}], ids=["trust region", "passes"])
def test_what_stands_in_a_dropped_row_never_matters(batch, settings):
    env = make_host(Walk, {"place": "reward", "effort": "info:cost"}, time_limit=8, on_fault="drop")
    small = Network((6,))
    inner = HostInnerLoop(env, policy=small, critic=small, rollout=Rollout(PATHS, STEPS), **settings)
    policy, learnt = inner.untaught(KEY)
    results = []
    for garbage in (0.0, 1e3):
        parts = lambda b: (b.observations, b.actions, b.rewards, b.next_observations)  # noqa: E731
        filled = [jnp.where(batch.dropped[..., None], part + garbage, part) for part in parts(batch)]
        seen = eqx.tree_at(parts, batch, filled)
        new, after = inner.micro_step(policy, policy, jnp.array([1.0, -0.5]), seen, learnt, KEY)
        results.append(jax.tree.leaves((new, after, inner.value_vector(learnt.critics, seen))))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


class Breaking(Walk):
    """Now and then it raises, as its own generator says; ``certain`` times it does so in any case."""

    certain = 0

    def step(self, action):
        if self.elapsed == 2 and (Breaking.certain > 0 or self.np_random.uniform() < 0.05):
            Breaking.certain -= 1
            raise RuntimeError("the simulator fell over")
        return super().step(action)


def train(env, **settings):
    small = {"policy": Network((8,)), "critic": Network((8,)), "rollout": Rollout(8, 10), "time_limit": 5}
    objectives = {"place": "reward", "effort": "info:cost"}
    linear = arnpg.Linear({"place": 1.0, "effort": -0.1})
    return arnpg.train(env, linear, objectives=objectives, iterations=4, **{**small, **settings})


def test_faults_are_counted_in_trace_progress_and_summary(tmp_path):
    shown = []
    run = train(Breaking, on_fault="drop", progress=shown.append)
    total = int(run.trace.faults.sum())
    assert 0 < total == sum(seen.faults for seen in shown)
    (note,) = [note for note in run.notes if note.startswith("faults")]
    assert f"the environment broke {total} times" in note
    assert note in run.summary()
    run.save(tmp_path / "run.npz")
    np.testing.assert_array_equal(arnpg.load(tmp_path / "run.npz").trace.faults, run.trace.faults)
    again = train(Breaking, on_fault="drop")
    np.testing.assert_array_equal(again.trace.values, run.trace.values)
    world = {"objectives": {"place": "reward", "effort": "info:cost"}, "time_limit": 5, "on_fault": "drop"}
    played = arnpg.evaluate(Breaking, run, episodes=60, **world)
    assert played.totals.shape == (1, 60, 2)
    assert (played.lengths == 5).all()  # none of those that were lost in their third step


def test_a_batch_without_any_whole_path_is_collected_anew():
    host = make_host(Breaking, {"place": "reward"}, time_limit=5, on_fault="drop")
    inner = HostInnerLoop(host, policy=Network((8,)), critic=Network((8,)), rollout=Rollout(2, 5))
    policy, work = inner.start(KEY)
    Breaking.certain = 2
    try:
        _, work = inner.evaluate(policy, work)
        assert (int(work.lost), int(work.unreported)) == (2, 20)
        Breaking.certain = 10**6
        with pytest.raises(arnpg.EnvironmentFault, match="batches in a row have no path|episode lost in a row"):
            inner.evaluate(policy, work)
    finally:
        Breaking.certain = 0
        inner.close()


def test_training_survives_a_worker_that_dies(tmp_path):
    def kill(progress):
        if progress.iteration == 2:
            (tmp_path / "order").write_text("die")

    run = train(functools.partial(Fragile, tmp_path), workers=2, progress=kill)
    assert not (tmp_path / "order").exists()
    assert run.trace.faults.sum() == 4  # all that were in the process
    assert np.isfinite(run.trace.values).all()
