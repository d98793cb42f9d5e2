"""Training in environments of the host: to a saved run, exact resume, faults that leave a checkpoint."""

import json
import os

import gymnasium
import jax
import numpy as np
import pytest
from host_environments import Walk

import arnpg
import arnpg.training as training
from arnpg.errors import ObjectiveError, SettingsError
from arnpg.neural.networks import Network
from arnpg.neural.proximal import Passes, ProximalLoss
from arnpg.neural.rollout import Rollout
from arnpg.report.run_chapter import run_chapter

OBJECTIVES = {"place": "reward", "effort": lambda t: abs(t.action[:, 0])}
LIMITED = arnpg.Constrained("place", at_most={"effort": 2.5})
SMALL = {"policy": Network((16,)), "critic": Network((16,)), "rollout": Rollout(32, 8), "time_limit": 8}


def train(env=Walk, criterion=LIMITED, iterations=6, **settings):
    return arnpg.train(env, criterion, objectives=OBJECTIVES, iterations=iterations, **{**SMALL, **settings})


def arrays(run):
    parts = (run.last, run.best, run.trace.values, run.trace.dual, run.trace.episode_length)
    return [np.asarray(leaf) for leaf in jax.tree.leaves(parts)]


def test_a_limit_is_learnt_and_kept(tmp_path):
    """Effort moves the walker and is limited: the best places under the limit, from a policy that stands still."""
    faster = Passes(ProximalLoss(0.05), learning_rate=3e-3)
    run = train(method="arppo-epd", iterations=100, seeds=2, options={"length": 50.0}, update=faster)
    assert run.method == "arppo-epd"
    assert run.trace.values[:, 0, 0].max() < 12
    # Eight steps from a start near .5: with all 2.5 units of effort at once the places would add up to 22.
    assert run.final[:, 0].min() > 15
    assert run.final[:, 1].max() < 2.5 * 1.1
    assert (run.trace.episode_length == 8).all()
    run.save(tmp_path / "run.npz")
    found = arnpg.load(tmp_path / "run.npz")
    for one, other in zip(arrays(found), arrays(run), strict=True):
        np.testing.assert_array_equal(one, other)
    world = {"objectives": OBJECTIVES, "time_limit": 8, "options": {"length": 50.0}}
    played = arnpg.evaluate(Walk, found, episodes=100, **world)
    # the policies of the last iteration against the mean of the last twenty, 100 episodes each
    np.testing.assert_allclose(played.totals.mean(axis=(0, 1)), run.final.mean(axis=0), rtol=0.15)
    assert (played.lengths == 8).all()


@pytest.mark.parametrize("method", ["npg-pd", "crpo", "focops"])
def test_every_method_runs_on_the_host(method):
    run = train(method=method, iterations=3)
    assert np.isfinite(run.trace.values).all()


def test_both_inner_loops_of_a_step_are_counted():
    run = train(method="arnpg-omda", criterion=arnpg.MaxMin(), iterations=4)
    assert run.trace.iterations[-1] == 4
    assert run.trace.env_steps[-1] >= 4 * 32 * 8


def test_a_run_that_was_interrupted_ends_as_one_that_was_not(tmp_path):
    """Statistics, critics, moments of Adam and the environments' seeds: all of it is in the checkpoint."""
    whole = train(method="arppo-epd", seeds=2)

    def stop(progress):
        if progress.iteration >= 3:
            raise SettingsError("stop here")

    with pytest.raises(SettingsError, match="stop here"):
        train(method="arppo-epd", seeds=2, out=tmp_path / "run", progress=stop)
    resumed = train(method="arppo-epd", seeds=2, out=tmp_path / "run")
    for one, other in zip(arrays(whole), arrays(resumed), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_discounted_limit_is_on_the_discounted_value():
    limited = arnpg.Constrained("place", at_most={"effort": arnpg.Discounted(2.0, 0.5)})
    run = train(criterion=limited, iterations=2)
    assert run.labels == ("effort <= 2",)
    assert run.notion.values[1].at == 0.5
    # At most 1 a step: never above 2 where the discount is .5.
    assert run.trace.values[..., 1].max() <= 2.0


class Tiring(Walk):
    """After some two thousand steps its reward is no number any more."""

    taken = 0

    def step(self, action):
        Tiring.taken += 1
        seen, reward, *rest = super().step(action)
        return seen, np.nan if Tiring.taken > 2000 else reward, *rest


def test_a_fault_leaves_a_checkpoint_and_what_is_needed_to_replay_it(tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(arnpg.EnvironmentFault, match=r"environment \d+, seed \d+, step \d+ .*the reward is nan"):
        train(Tiring, out=folder, iterations=50)
    with np.load(folder / "fault.npz", allow_pickle=False) as found:
        assert len(found["episode_actions"]) >= 1
        assert {"environment", "seed", "step"} <= set(found)
    Tiring.taken = -100_000  # mended
    run = train(Tiring, out=folder, iterations=50)
    assert len(run.trace) == 25
    Tiring.taken = -100_000
    for one, other in zip(arrays(train(Tiring, iterations=50)), arrays(run), strict=True):
        np.testing.assert_array_equal(one, other)


class Forgetful(Walk):
    """Its seed is left unused."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=int.from_bytes(os.urandom(4)), options=options)


def test_an_environment_that_forgets_its_seed_is_not_called_reproducible(tmp_path):
    with pytest.warns(UserWarning, match="not reproducible: under one seed the environment goes two ways"):
        run = train(Forgetful, iterations=2, out=tmp_path / "run")
    assert not run.reproducible
    (note,) = [note for note in run.notes if note.startswith("not reproducible")]
    assert "(the first observation differs)" in note
    assert "self.np_random" in note
    assert note in run.summary()
    assert not json.loads((tmp_path / "run" / "summary.json").read_text())["reproducible"]
    found = arnpg.load(tmp_path / "run" / "trained.npz")
    assert (found.reproducible, found.notes) == (False, run.notes)
    assert ("reproducible", "no") in run_chapter(tmp_path / "run").facts
    assert train(iterations=2).reproducible


def test_episodes_that_never_end_are_told_with_the_bound_of_what_is_cut_off():
    """Length 500 is out of reach in 8 steps; length 0 is reached in the first."""
    limited = arnpg.Constrained("place", at_most={"effort": arnpg.Discounted(2.0, 0.5)})
    run = train(criterion=limited, iterations=2, options={"length": 500.0})
    (note,) = run.notes
    assert "ended before the time limit of 8 steps" in note
    assert note.endswith(f"0.5^8 = {0.5**8:.2g}, 0.99^8 = {0.99**8:.2g}.")
    assert train(iterations=2, options={"length": 0.0}).notes == ()


def test_other_versions_of_the_environment_are_refused_unless_forced(tmp_path, monkeypatch):
    whole = train()

    def stop(progress):
        if progress.iteration >= 3:
            raise SettingsError("stop here")

    with monkeypatch.context() as patch:
        patch.setattr(training, "backend_versions", lambda env: {"gymnasium": "0.9"})
        with pytest.raises(SettingsError, match="stop here"):
            train(out=tmp_path / "run", progress=stop)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["environment"] == {"gymnasium": "0.9"}
    now = gymnasium.__version__
    with pytest.raises(SettingsError, match=rf"gymnasium 0\.9 -> {now}.*Install the old ones.*--force \(force=True\)"):
        train(out=tmp_path / "run")
    with pytest.warns(UserWarning, match="it goes on all the same"):
        run = train(out=tmp_path / "run", force=True)
    for one, other in zip(arrays(whole), arrays(run), strict=True):
        np.testing.assert_array_equal(one, other)
    changes = json.loads((tmp_path / "run" / "summary.json").read_text())["environment_changes"]
    assert changes == [f"gymnasium 0.9 -> {now}"]
    assert ("went on with", changes[0]) in run_chapter(tmp_path / "run").facts
    train(out=tmp_path / "run")  # finished: it is only read


def test_what_is_refused():
    with pytest.raises(SettingsError, match="is for environments by id, class or function"):
        arnpg.train(arnpg.envs.CartPole(), arnpg.Linear({"upright": 1.0}), backend="gymnasium")
    with pytest.raises(SettingsError, match="env must be an environment of arnpg.envs, a Gymnasium id"):
        arnpg.train(3, arnpg.Linear({"upright": 1.0}))
    with pytest.raises(SettingsError, match="both say how objectives are valued"):
        train(criterion=arnpg.Constrained("place", at_most={"effort": arnpg.Discounted(2.0, 0.5)}), values="episode")
    with pytest.raises(ObjectiveError, match="must be of one kind"):
        arnpg.Constrained("place", at_least={"effort": 1.0}, at_most={"effort": arnpg.Discounted(2.0, 0.5)})
    with pytest.raises(ObjectiveError, match=r"discount must lie in \[0, 1\), got 1"):
        arnpg.Discounted(2.0, 1.0)
