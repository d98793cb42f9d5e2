"""The macro loop: chunks, stopping, averages, best iterates, and refusals."""

import jax
import numpy as np
import pytest
from polytope import polytope

import arnpg.loop as loop_module
from arnpg import Constrained, NumericalError, ObjectiveError, SettingsError
from arnpg.batch import stack, take
from arnpg.inner_loop import FixedMicroSteps
from arnpg.loop import Watch, run, run_batch
from arnpg.method import Algorithm
from arnpg.methods import EPD, IMD, OMDA
from arnpg.tabular.exact import ExactInnerLoop, occupancy

CRITERION = Constrained("first", at_least={"second": 3.0}).bind(("first", "second"))


def epd(mdp, step_size=1.0):
    inner = ExactInnerLoop(mdp, step_size=step_size, regularisation=0.2)
    return Algorithm(EPD(CRITERION, FixedMicroSteps(1), 1.0), inner)


def test_chunks_do_not_change_the_run(paper_mdp, monkeypatch):
    """Chunks of 7 rows and one chunk give the same bits; progress counts every step."""
    whole = run(epd(paper_mdp), 30)
    seen = []
    monkeypatch.setattr(loop_module, "CAPACITY", 7)
    parts = run(epd(paper_mdp), 30, on_chunk=lambda chunk: seen.append(chunk.done) or False)
    np.testing.assert_array_equal(whole.trace.values, parts.trace.values)
    assert seen[-1] == 30
    assert len(seen) >= 5


def test_the_average_is_one_policy(paper_mdp):
    """Mean occupancy over the iterates, normalised per state, attains the mean of the values (1e-12: one solve)."""
    from arnpg import evaluate

    found = run(epd(paper_mdp), 50, watch=Watch(mean=occupancy))
    policy = found.mean / found.mean.sum(axis=1, keepdims=True)
    values = evaluate(paper_mdp, policy)
    np.testing.assert_allclose(list(values.values()), found.trace.values.mean(axis=0), rtol=1e-12)


def test_best_is_the_best_feasible_iterate(paper_mdp):
    """Feasible before infeasible, then by the objective."""
    found = run(epd(paper_mdp), 60)
    feasible = found.trace.values[:, 1] >= 3 - 1e-9
    best = found.trace.values[feasible, 0].max()
    values = found.best.state_values @ paper_mdp.initial
    assert values[0] == pytest.approx(best, abs=1e-13)
    assert values[1] >= 3 - 1e-9


def test_stop_and_time_limit(paper_mdp, monkeypatch):
    """Both end a run after the chunk in which they come true."""
    monkeypatch.setattr(loop_module, "CAPACITY", 5)
    assert len(run(epd(paper_mdp), 1000, on_chunk=lambda chunk: chunk.done >= 15).trace.values) < 200
    assert len(run(epd(paper_mdp), 10**6, time_limit=1e-3).trace.values) < 10**5


@pytest.mark.parametrize("steps", [0, -1, 2.5, True])
def test_steps_must_be_whole(paper_mdp, steps):
    with pytest.raises(SettingsError, match="steps must be a whole number"):
        run(epd(paper_mdp), steps)


def test_batches_must_be_of_one_kind(paper_mdp, small_mdp):
    imd = Algorithm(IMD(polytope_criterion(), FixedMicroSteps(1)), polytope())
    with pytest.raises(SettingsError, match="one kind"):
        run_batch([imd, epd(paper_mdp)], 3)
    with pytest.raises(SettingsError, match="equal shapes"):
        run_batch([epd(paper_mdp), epd(small_mdp)], 3)
    with pytest.raises(SettingsError, match="at least one"):
        run_batch([], 3)


def polytope_criterion():
    from arnpg import ProportionalFair

    return ProportionalFair().bind(("first", "second"))


def test_values_that_are_not_finite_are_named_by_their_step(paper_mdp):
    """A NaN in a reward table slipped in behind the checks."""
    algorithm = epd(paper_mdp)
    rewards = np.array(algorithm.inner.rewards)
    rewards[0, 0, 0] = np.nan
    object.__setattr__(algorithm.inner, "rewards", rewards)
    with pytest.raises(NumericalError, match="macro step 1;"):
        run(algorithm, 5)


def test_a_tree_of_a_batch_is_what_was_put_in():
    """Also where a setting is none, which is no leaf and not the same as a leaf without an axis."""
    trees = [{"same": np.ones(2), "own": np.asarray(float(i)), "none": None} for i in range(3)]
    stacked, axes = stack(trees)
    for index, tree in enumerate(trees):
        found = take(stacked, axes, index)
        assert found["none"] is None
        np.testing.assert_array_equal(found["own"], tree["own"])
        np.testing.assert_array_equal(found["same"], tree["same"])


def test_methods_refuse_criteria_they_have_no_formula_for():
    """The message says which method takes it."""
    with pytest.raises(ObjectiveError, match="arnpg-epd"):
        IMD(CRITERION, FixedMicroSteps(1))
    with pytest.raises(ObjectiveError, match="arnpg-imd"):
        EPD(polytope_criterion(), FixedMicroSteps(1), 1.0)
    with pytest.raises(ObjectiveError, match="MaxMin"):
        OMDA(polytope_criterion(), FixedMicroSteps(1), 1.0)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_settings_must_be_positive(paper_mdp, bad):
    with pytest.raises(SettingsError, match="dual_step must be a finite number > 0"):
        EPD(CRITERION, FixedMicroSteps(1), bad)
    with pytest.raises(SettingsError, match="step_size must be a finite number > 0"):
        ExactInnerLoop(paper_mdp, step_size=bad, regularisation=1.0)
    with pytest.raises(SettingsError, match="regularisation must be a finite number > 0"):
        ExactInnerLoop(paper_mdp, step_size=1.0, regularisation=bad)


@pytest.mark.parametrize("bad", [0, -3, True])
def test_micro_steps_must_be_whole(bad):
    with pytest.raises(SettingsError, match="micro_steps must be a whole number >= 1"):
        FixedMicroSteps(bad)


def test_a_different_key_is_the_same_run_for_exact_gradients(paper_mdp):
    one, two = (run(epd(paper_mdp), 5, key=jax.random.key(seed)).trace.values for seed in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_model_that_a_float32_program_holds_still_runs_in_float64(small_mdp):
    """JAX keeps an array object in the precision that first read it; a user's own program may keep the model so."""
    inner = ExactInnerLoop(small_mdp, step_size=0.3, regularisation=0.3)
    held = [jax.make_jaxpr(lambda x, array=array: x * array)(1.0) for array in (small_mdp.rewards, inner.rewards)]
    criterion = Constrained("first", at_least={"second": 1.75}).bind(small_mdp.names)
    found = run(Algorithm(EPD(criterion, FixedMicroSteps(2), 0.5), inner), 3)
    assert found.trace.values.dtype == np.float64
    assert len(held) == 2
