"""The steady ARNPG-EPD by its formulas; against EPD where its three additions are off; as a controller."""

import numpy as np
import pytest
from polytope import polytope

from arnpg import Constrained, MaxMin
from arnpg.errors import ObjectiveError, SettingsError
from arnpg.inner_loop import FixedMicroSteps
from arnpg.loop import run
from arnpg.method import Algorithm
from arnpg.methods import EPD, SteadyEPD

NAMES = ("reward", "cost", "need")
CRITERION = Constrained("reward", at_most={"cost": 50.0}, at_least={"need": 0.0}).bind(NAMES)


def steady(dual_step=0.01, damping=0.1, margin=0.1, clip=0.2, criterion=CRITERION):
    return SteadyEPD(criterion, FixedMicroSteps(1), dual_step, damping, margin, clip)


def by_name(slack):
    """Entries of the two limits by name, whatever their order in the criterion."""
    rows = np.asarray(CRITERION.rows)
    return {"cost": slack[rows[:, 1] != 0].item(), "need": slack[rows[:, 2] != 0].item()}


def test_weights_and_dual_by_hand():
    method, dual = steady(), np.zeros(2, np.float32)
    values = np.array([7.0, 60.0, 2.0], np.float32)
    # cost: 50 - 5 of margin - 60 = -15 of slack; need: 2 - 0, and a limit of 0 has neither margin nor clip
    weights = np.asarray(method.weights(values, dual))
    np.testing.assert_allclose(weights, [1.0, -0.1 * 15, 0.0], rtol=1e-6)
    # the integral sees no more than 0.2 * 50 = 10 of the 15
    moved = by_name(np.asarray(method.update_dual(dual, values, values)))
    np.testing.assert_allclose([moved["cost"], moved["need"]], [0.01 * 10, 0.0], rtol=1e-6)
    short = np.array([7.0, 40.0, -3.0], np.float32)
    moved = by_name(np.asarray(method.update_dual(dual + 0.5, values, short)))
    np.testing.assert_allclose([moved["cost"], moved["need"]], [0.5 - 0.01 * 5, 0.5 + 0.01 * 3], rtol=1e-5)


def test_a_scale_stands_in_for_limits_of_zero():
    method = SteadyEPD(CRITERION, FixedMicroSteps(1), 0.01, 0.1, 0.1, 0.2, scale=10.0)
    values = np.array([7.0, 50.0, -5.0])
    # need: -5 less a tenth of 10 is -6, of which the integral sees 2
    np.testing.assert_allclose(method.weights(values, np.zeros(2))[2], 0.1 * 6, rtol=1e-6)
    moved = by_name(np.asarray(method.update_dual(np.zeros(2), values, values)))
    np.testing.assert_allclose(moved["need"], 0.01 * 2, rtol=1e-6)


def test_without_its_additions_it_weighs_as_epd():
    """Damping of the dual step, no margin, no clip: EPD's weights wherever these are not negative."""
    plain = EPD(CRITERION, FixedMicroSteps(1), 0.01)
    method, draws = steady(damping=0.01, margin=0.0, clip=1e6), np.random.default_rng(0)
    for _ in range(20):
        values, dual = draws.normal(50, 20, 3), draws.uniform(1, 2, 2)
        np.testing.assert_allclose(method.weights(values, dual), plain.weights(values, dual), rtol=1e-5)


def test_it_settles_at_the_limit_less_the_margin():
    names = ("first", "second")
    criterion = Constrained("first", at_least={"second": 0.6}).bind(names)
    method = SteadyEPD(criterion, FixedMicroSteps(1), 0.5, 1.0, 0.05, 0.5)
    values = run(Algorithm(method, polytope()), 300).trace.values
    np.testing.assert_allclose(values[-50:, 1].mean(), 0.6 * 1.05, atol=0.01)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dual_step": 0.0}, "dual_step must be a finite number > 0, got 0.0"),
        ({"damping": -1.0}, "damping must be a finite number > 0, got -1.0"),
        ({"clip": float("inf")}, "clip must be a finite number > 0, got inf"),
        ({"margin": 1.0}, r"margin must lie in \[0, 1\), got 1.0; .1 keeps a tenth of each limit free"),
    ],
)
def test_refusals(settings, words):
    with pytest.raises(SettingsError, match=words):
        steady(**settings)


def test_it_needs_limits():
    with pytest.raises(ObjectiveError, match="takes a smooth objective under constraints"):
        steady(criterion=MaxMin().bind(NAMES))
