"""Training: the same seed, the same run; folders continue it exactly; what comes back is what was seen."""

import json
import os
import pathlib
import random
import subprocess
import sys
import time
import types
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import training_victim

import arnpg
from arnpg import training
from arnpg.errors import NumericalError, ObjectiveError, SettingsError, StorageError
from arnpg.loop import Chunk
from arnpg.neural.networks import Network
from arnpg.neural.rollout import Rollout

ITERATIONS = training_victim.ITERATIONS
train = training_victim.train


def arrays(run):
    """Everything that a run returns but its seconds."""
    parts = (run.last, run.best, *(getattr(run.trace, name) for name in run.trace.__dataclass_fields__))
    return [np.asarray(leaf) for leaf in jax.tree.leaves(parts)]


def same(one, other):
    """Equal in every bit and every type."""
    for left, right in zip(arrays(one), arrays(other), strict=True):
        assert left.dtype == right.dtype
        assert left.tobytes() == right.tobytes()


@pytest.fixture(scope="module")
def run():
    """Two seeds of a small run."""
    return train()


def test_the_same_seed_is_the_same_run_alone_or_among_others(run):
    same(train(), run)
    alone = train(seeds=[1])
    np.testing.assert_array_equal(alone.trace.values[0], run.trace.values[1])
    assert not np.array_equal(run.trace.values[0], run.trace.values[1])


def test_the_trace_counts_what_was_done(run):
    steps = ITERATIONS // 2
    assert len(run.trace) == steps
    np.testing.assert_array_equal(run.trace.iterations, 2 * np.arange(1, steps + 1))
    # one batch a micro step; the one that values a step's policy is the first of the next step
    np.testing.assert_array_equal(run.trace.env_steps, 200 * 2 * np.arange(1, steps + 1))
    values = run.trace.values
    np.testing.assert_allclose(run.trace.objective, values[..., 0])
    np.testing.assert_allclose(run.trace.slack[..., 0], 5.0 - values[..., 1], rtol=1e-6)
    np.testing.assert_allclose(run.final, values[:, -10:].mean(axis=1), rtol=1e-6)


def test_the_best_policy_is_feasible_before_infeasible(run):
    """The batch on which the kept policy was seen is the best of the trace, limits first."""
    fresh = arnpg.evaluate(training_victim.ENV, run, episodes=400, which="best").totals.mean(axis=1)
    for seed, values in enumerate(run.trace.values):
        kept = values[:, 1] <= 5.0
        assert kept.any()
        best = values[kept][values[kept][:, 0].argmax()]
        # a value is the mean of 4 episodes, whose lengths have a deviation near 12, and the best of ten is chosen
        assert abs(fresh[seed, 0] - best[0]) < 20
    assert not np.array_equal(run.last.network.weights[0], run.best.network.weights[0])


def test_a_file_gives_everything_back(run, tmp_path):
    run.save(tmp_path / "run.npz")
    found = arnpg.load(tmp_path / "run.npz")
    same(found, run)
    assert found.summary() == run.summary()
    observations = np.random.default_rng(0).normal(size=(50, 4))
    np.testing.assert_array_equal(found.policy(1)(observations), run.policy(1)(observations))
    one, other = (r.policy()(observations, rng=np.random.default_rng(3)) for r in (found, run))
    np.testing.assert_array_equal(one, other)


def test_a_folder_changes_nothing_and_is_returned_when_finished(run, tmp_path):
    same(train(out=tmp_path / "run"), run)
    config = json.loads((tmp_path / "run" / "config.json").read_text())["config"]
    assert config["seeds"] == [0, 1]
    assert config["method"] == "arnpg-epd"
    before = (tmp_path / "run" / "trained.npz").read_bytes()
    same(train(out=tmp_path / "run"), run)
    assert (tmp_path / "run" / "trained.npz").read_bytes() == before
    with pytest.raises(StorageError, match="holds a run of another configuration"):
        train(out=tmp_path / "run", seeds=3)


def test_interrupted_by_its_own_callback_it_goes_on(run, tmp_path):
    seen = []

    def stop(progress):
        seen.append(progress)
        if progress.iteration >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(out=tmp_path / "run", progress=stop, checkpoint_every=0.0)
    assert seen[-1].iterations == ITERATIONS
    saved = seen[-2].iteration
    assert set(seen[-1].values) == {"upright", "distance"}
    assert set(seen[-1].slack) == set(seen[-1].dual) == {"distance <= 5"}
    assert seen[-1].steps_per_second > 0
    more = []
    same(train(out=tmp_path / "run", progress=more.append), run)
    assert saved < more[0].iteration < more[-1].iteration == ITERATIONS  # it went on and did not begin again
    assert more[-1].iterations == ITERATIONS


@pytest.mark.slow
def test_killed_at_random_moments(run, tmp_path):
    """SIGKILL three times at moments after the start, then to the end; the compiled programs are shared."""
    folder, draws = tmp_path / "run", random.Random(0)
    words = [sys.executable, training_victim.__file__, str(folder)]
    places = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    for _ in range(3):
        process = subprocess.Popen([*words, "slow"], env={**os.environ, **places})
        up, deadline = pathlib.Path(f"{folder}.up"), time.monotonic() + 120
        while not up.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(draws.uniform(0, 0.6))
        assert process.poll() is None
        process.kill()
        process.wait()
        up.unlink()
    same(train(out=folder, resume="auto"), run)


def test_own_objectives_and_settings_with_dots():
    def spin(transition):
        return jnp.abs(transition.next_state.turning)

    found = train(
        iterations=1,
        seeds=1,
        criterion=arnpg.Linear({"spin": -1.0}),
        objectives={"spin": spin},
        **{"update.max_kl": "0.02", "advantages": "gae", "policy.activation": "tanh"},
    )
    assert found.names == ("spin",)
    assert found.method == "arnpg-imd"
    assert found.settings["update.max_kl"] == "0.02"
    assert 0 < found.final[0, 0] < 500


@pytest.mark.slow
@pytest.mark.parametrize(
    ("criterion", "method"),
    [(arnpg.MaxMin({"upright": 50.0, "distance": 5.0}), "arnpg-omda"), (arnpg.MaxMin(), "mo-npg")],
    ids=["omda", "mo-npg"],
)
def test_max_min(criterion, method):
    """The methods that no experiment of environments runs."""
    given = {} if method == "arnpg-omda" else {"method": method}
    found = train(criterion=criterion, iterations=4, seeds=1, **given)
    assert found.method == method
    assert np.isfinite(found.trace.values).all()
    assert found.trace.iterations[-1] == 4


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"iterations": 0}, "iterations must be a whole number >= 1, got 0"),
        ({"iterations": 2.5}, "iterations must be a whole number >= 1, got 2.5"),
        ({"seeds": 0}, "seeds must be at least 1, got 0; or give them as a list"),
        ({"seeds": [1, 1]}, "seeds must hold different whole numbers"),
        ({"seed": -1}, "seed must be a whole number >= 0, got -1"),
        ({"method": "epd"}, "method must be one of arnpg-imd, arnpg-epd"),
        ({"dual_stepp": 1.0}, "'dual_stepp' is not a setting of 'arnpg-epd'; it has micro_steps"),
        ({"dual_step": "x"}, "dual_step must be a number, got 'x'"),
        ({"dual_step": -1.0}, "dual_step must be a finite number > 0, got -1"),
        ({"micro_steps": 0}, "micro_steps must be a whole number >= 1, got 0"),
        ({"rollout": Rollout(4, 50), "rollout.pathz": 3}, "rollout.pathz is not a setting: Rollout has paths"),
        ({"rollout.paths": "many"}, "rollout.paths must be a whole number, got 'many'"),
        ({"values": "total"}, "values must be one of path, episode, discounted, got 'total'"),
        ({"method": "arnpg-epd-steady", "margin": 1.5}, r"margin must lie in \[0, 1\), got 1.5"),
        ({"method": "arnpg-epd-steady", "damping": 0.0}, "damping must be a finite number > 0, got 0"),
        ({"values": 3}, "values must be of path, episode, discounted, one or one for each objective, got 3"),
        ({"values": "episode,total"}, "values must be of path, episode, discounted"),
        ({"values": ("path", "path", "path")}, "values must hold one part for each of"),
        ({"policy": 3}, r"policy must be a part such as Network\(...\), got 3; its settings have dots"),
        ({"update": "npg"}, r"update must be a part such as TrustRegion\(...\), got 'npg'"),
        ({"policy.hidden": 3.5, "policy": Network((8,))}, "hidden must hold whole numbers >= 1"),
        ({"regularisation": -1.0}, "alpha must be a finite number >= 0, got -1.0"),
        ({"fit.learning_rate": -1.0}, "learning_rate must be a finite number >= 0, got -1.0"),
        ({"seeds": "10"}, "seeds must be a whole number, or a list of them, got '10'"),
        ({"seeds": [0.5, 1]}, "seeds must hold different whole numbers"),
        ({"checkpoint_iterations": 0}, "checkpoint_iterations must be at least 1, got 0"),
    ],
)
def test_bad_settings_are_refused_before_anything_runs(settings, words):
    with pytest.raises(SettingsError, match=words):
        train(**settings)


class Careless(arnpg.envs.CartPole):
    """What is wrong is said by the test."""

    wrong: str = eqx.field(static=True, default="")

    def observe(self, physics):
        return jnp.stack(physics)[: 3 if self.wrong == "observe" else 4]

    def advance(self, physics, action, key):
        after, ended = super().advance(physics, action, key)
        if self.wrong == "dtype":
            after = after._replace(speed=action)
        return after, jnp.stack([ended, ended]) if self.wrong == "ended" else ended

    def initial(self, key):
        return super().initial(self.wrong if self.wrong == "fails" else key)


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (Careless(wrong="observe"), r"observe must return 4 float32 numbers .* got float32 of shape \(3,\)"),
        (Careless(wrong="dtype"), "advance must keep the state's shapes and dtypes"),
        (Careless(wrong="ended"), r"advance must return the next state and one truth value, got bool of shape \(2,\)"),
        (Careless(wrong="fails"), "initial of the environment failed: TypeError"),
        (Careless(time_limit=0), "time_limit must be a whole number >= 1, got 0"),
    ],
)
def test_environments_that_break_their_promises(env, words):
    with pytest.raises(SettingsError, match=words):
        arnpg.train(env, training_victim.CRITERION)


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        (lambda t: t.observation, r"objectives\['upright'\] must give one number for a transition, got shape \(4,\)"),
        (lambda t: t.nothing, r"objectives\['upright'\] failed on a transition: AttributeError"),
        (lambda t: None, r"objectives\['upright'\] failed on a transition"),
    ],
)
def test_objectives_that_are_no_numbers(objective, words):
    with pytest.raises(ObjectiveError, match=words):
        train(objectives={"upright": objective, "distance": lambda t: 1.0})


def test_a_logarithm_of_zero_is_told_and_not_trained_on():
    """A batch without any reward, and proportional fairness without an offset: the gradient is infinite."""
    plan: Any = types.SimpleNamespace(
        env=types.SimpleNamespace(names=("up",)), criterion=arnpg.ProportionalFair().bind(("up",))
    )
    weights, values = np.ones((2, 3, 1)), np.ones((2, 3, 1))
    chunk = Chunk(3, 9, types.SimpleNamespace(weights=weights, values=values), None, 0.1, None)
    assert training._checked(plan, lambda chunk: "told")(chunk) == "told"
    weights[1, 2], values[1, 2] = np.inf, 0.0
    with pytest.raises(NumericalError, match=r"are \[inf\] at values of up 0: .* an offset"):
        training._checked(plan, lambda chunk: "")(chunk)


def test_bad_environments_and_criteria_are_refused():
    with pytest.raises(SettingsError, match="'cartpole' is not the id of an environment; perhaps you meant"):
        arnpg.train("cartpole", arnpg.Linear({"upright": 1.0}))
    with pytest.raises(ObjectiveError, match="criterion must be Constrained"):
        arnpg.train(training_victim.ENV, "upright")
    with pytest.raises(ObjectiveError, match="speed"):
        arnpg.train(training_victim.ENV, arnpg.Constrained("upright", at_most={"speed": 1.0}))
    with pytest.raises(ObjectiveError, match="ARNPG-EPD takes a smooth objective under constraints"):
        arnpg.train(training_victim.ENV, arnpg.Linear({"upright": 1.0}), method="arnpg-epd")
