"""The published instance of Appendix A.1: independently computed numbers, to the digits they are known to."""

import numpy as np
import pytest

from arnpg import Constrained, MaxMin, ProportionalFair, solve
from arnpg.loop import run
from arnpg.recipes.tabular import METHODS
from arnpg.solution import log_log_slope, running_mean

CMDP, SUMLOG, MAXMIN = 4.462443636256558, 2.774571812, 4.002725575
LIMITED = Constrained("first", at_least={"second": 3.0})


def trace_of(mdp, words, name, **settings):
    return run(METHODS[name](mdp, words.bind(mdp.names), **settings), 300).trace.values


def with_initial(mdp, values):
    """The baselines' averages start at ``pi_0``, the uniform policy."""
    uniform = np.full((mdp.states, mdp.actions), 1 / mdp.actions)
    under = np.einsum("sa,sat->st", uniform, mdp.transitions)
    solved = np.linalg.solve(np.eye(mdp.states) - 0.8 * under, np.einsum("sa,msa->sm", uniform, mdp.rewards))
    return np.vstack([mdp.initial @ solved, values[:-1]])


@pytest.mark.parametrize(
    ("words", "optimum", "digits"),
    [
        (LIMITED, CMDP, 1e-12),
        (ProportionalFair(offset=1e-3), SUMLOG, 1e-9),
        (ProportionalFair(), 2.774072238, 1e-9),
        (MaxMin(), MAXMIN, 1e-9),
    ],
)
def test_optima(paper_mdp, words, optimum, digits):
    """HiGHS and Clarabel; the tolerance is the last digit printed there."""
    found = solve(paper_mdp, words, gap=1e-10)
    assert found.objective == pytest.approx(optimum, abs=digits)
    assert found.objective - 1e-9 <= optimum <= found.bound + digits


def test_multiplier_and_sumlog_values(paper_mdp):
    """The price of the constraint, and the fair point."""
    assert solve(paper_mdp, LIMITED, gap=1e-10).multipliers["second >= 3"] == pytest.approx(0.24266971, abs=1e-8)
    fair = solve(paper_mdp, ProportionalFair(offset=1e-3), gap=1e-12)
    assert list(fair.values.values()) == pytest.approx([3.98172809, 4.02432148], abs=2e-6)


def test_epd(paper_mdp):
    """Average gap and violation at 10, 50, 100, 300, the slope, the last iterate."""
    values = trace_of(paper_mdp, LIMITED, "arnpg-epd")
    gaps, broken = CMDP - running_mean(values[:, 0]), 3 - running_mean(values[:, 1])
    at = [9, 49, 99, 299]
    assert gaps[at] == pytest.approx([0.123533, 0.026888, 0.013572, 0.004538], abs=6e-7)
    assert broken[at] == pytest.approx([-0.0191, -0.0037, -0.0018, -0.0006], abs=6e-5)
    assert CMDP - values[-1, 0] == pytest.approx(1.8e-6, abs=6e-8)
    assert log_log_slope(gaps, first=10) == pytest.approx(-0.983, abs=0.02)


def test_epd_with_a_longer_step(paper_mdp):
    """eta = 5: the last iterate is exact."""
    values = trace_of(paper_mdp, LIMITED, "arnpg-epd", step_size=5.0)
    assert CMDP - values[:, 0].mean() == pytest.approx(0.001168, abs=6e-7)
    assert CMDP - values[-1, 0] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "gaps"), [("npg-pd", [0.448, 0.1036, 0.0543, 0.0199]), ("crpo", [0.830, 0.1916, 0.1006, 0.0352])]
)
def test_constrained_baselines(paper_mdp, name, gaps):
    """Averages over ``pi_0 .. pi_{K-1}``."""
    values = with_initial(paper_mdp, trace_of(paper_mdp, LIMITED, name))
    averages = (CMDP - running_mean(values[:, 0]))[[9, 49, 99, 299]]
    assert averages == pytest.approx(gaps, abs=6e-4)


@pytest.mark.parametrize(("micro_steps", "gap"), [(1, 3.805e-4), (2, 1.032e-4), (5, 2.27e-5), (10, 1.22e-5)])
def test_imd(paper_mdp, micro_steps, gap):
    """More micro steps, a smaller average gap; slopes near -1."""
    words = ProportionalFair(offset=1e-3)
    criterion = words.bind(paper_mdp.names)
    values = trace_of(paper_mdp, words, "arnpg-imd", regularisation=0.01, micro_steps=micro_steps)
    gaps = solve(paper_mdp, words, gap=1e-12).objective - running_mean(np.array([criterion.value(v) for v in values]))
    assert gaps[-1] == pytest.approx(gap, rel=5e-3)
    assert -0.995 <= log_log_slope(gaps, first=10) <= -0.98


@pytest.mark.parametrize(("micro_steps", "gap"), [(1, 0.0920), (2, 0.0566), (5, 0.0385), (10, 0.0356)])
def test_omda(paper_mdp, micro_steps, gap):
    """The paper's settings."""
    values = trace_of(paper_mdp, MaxMin(), "arnpg-omda", micro_steps=micro_steps)
    assert MAXMIN - values.mean(axis=0).min() == pytest.approx(gap, abs=6e-5)


def test_omda_with_a_longer_step(paper_mdp):
    """eta = 4, alpha = .05: four digits, and an exact last iterate."""
    values = trace_of(paper_mdp, MaxMin(), "arnpg-omda", step_size=4.0, regularisation=0.05)
    assert MAXMIN - values.mean(axis=0).min() == pytest.approx(5.1e-4, abs=6e-6)
    assert MAXMIN - values[-1].min() == pytest.approx(0, abs=1e-9)


def test_mo_npg(paper_mdp):
    """The mean of the gaps and the gap of the mean."""
    values = trace_of(paper_mdp, MaxMin(), "mo-npg")
    assert MAXMIN - values.min(axis=1).mean() == pytest.approx(0.0189, abs=6e-5)
    assert MAXMIN - values.mean(axis=0).min() == pytest.approx(0.0069, abs=6e-5)
