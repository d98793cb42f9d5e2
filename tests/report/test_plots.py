import sys

import numpy as np
import pytest

import arnpg
from arnpg.examples import random_cmdp, two_class_queue
from arnpg.report.plots import Panel, plot_region, plot_regions, plot_solution

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def mdp():
    return random_cmdp()


@pytest.fixture(scope="module")
def solution(mdp):
    return arnpg.solve(mdp, arnpg.Constrained("r1", at_least={"r2": 3.0}))


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_solution_is_drawn(solution, tmp_path, ending):
    path = tmp_path / f"picture.{ending}"
    figure = solution.plot(path)
    assert path.stat().st_size > 5000
    left, right = figure.axes
    assert left.get_ylabel() == "objective"
    assert right.get_yscale() == "log"
    labels = left.get_legend_handles_labels()[1]
    assert "certified bound" in labels


def test_curves_are_the_trace(solution):
    left = plot_solution(solution).axes[0]
    np.testing.assert_array_equal(left.lines[0].get_ydata(), solution.trace.objective)
    np.testing.assert_array_equal(left.lines[1].get_ydata(), solution.trace.bound)


@pytest.mark.parametrize("method", ["arnpg-imd", "mo-npg"])
def test_a_plain_algorithm_without_bounds(mdp, method, tmp_path):
    solution = arnpg.solve(mdp, arnpg.ProportionalFair(), method=method, steps=20)
    solution.plot(tmp_path / "p.png")
    assert (tmp_path / "p.png").exists()


def test_a_solution_read_from_a_file_is_drawn(solution, tmp_path):
    solution.save(tmp_path / "s.npz")
    assert len(arnpg.load(tmp_path / "s.npz").plot().axes) == 2


def test_the_region_with_answers_and_limits(mdp, solution, tmp_path):
    region = arnpg.achievable_region(mdp)
    figure = plot_region(region, {"a": solution.values}, tmp_path / "r.png", limits=[("r2", ">=", 3.0)], title="t")
    (axes,) = figure.axes
    assert axes.get_legend_handles_labels()[1] == ["achievable", "r2 >= 3", "a"]
    assert axes.get_xlabel() == "value of r1"
    two = plot_regions([Panel("1", region, {}), Panel("2", region, {"a": solution.values})])
    assert len(two.axes) == 2


def test_an_unknown_ending_is_refused(solution, tmp_path):
    with pytest.raises(arnpg.SettingsError, match="cannot be drawn to"):
        plot_solution(solution, tmp_path / "p.xyz")


def test_pyplot_is_left_alone(solution):
    before = "matplotlib.pyplot" in sys.modules
    plot_solution(solution)
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_without_matplotlib_the_cure_is_named(solution, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(arnpg.SettingsError, match=r"pip install \"arnpg\[plot\]\""):
        solution.plot()


def inside(vertices, point, slack):
    following = np.roll(vertices, -1, axis=0)
    edge, to = following - vertices, point - vertices
    return (edge[:, 0] * to[:, 1] - edge[:, 1] * to[:, 0] >= -slack * np.linalg.norm(edge, axis=1)).all()


def test_every_policy_lies_in_the_region(mdp):
    region = arnpg.achievable_region(mdp, tolerance=1e-6)
    generator = np.random.default_rng(0)
    for _ in range(50):
        policy = generator.dirichlet(np.full(10, 0.1), size=20)
        values = arnpg.evaluate(mdp, policy)
        assert inside(region.vertices, np.array([values["r1"], values["r2"]]), 1e-5)


def test_answers_lie_on_the_edge_of_the_region(mdp, solution):
    vertices = arnpg.achievable_region(mdp, tolerance=1e-6).vertices
    point = np.array([solution.values["r1"], solution.values["r2"]])
    assert inside(vertices, point, 1e-4)
    assert not inside(vertices, point + [1e-3, 0], 1e-5)


def test_regions_that_are_flat_or_a_point():
    flat = arnpg.MDP(np.ones((1, 2, 1)), {"a": [[0.0, 1.0]], "b": [[0.0, 1.0]]}, discount=0.5)
    assert np.ptp(arnpg.achievable_region(flat).vertices, axis=0) == pytest.approx([2.0, 2.0])
    point = arnpg.MDP(np.ones((1, 1, 1)), {"a": [[1.0]], "b": [[2.0]]}, discount=0.5)
    assert arnpg.achievable_region(point).vertices == pytest.approx(np.array([[2.0, 4.0]]))


@pytest.mark.parametrize("names", [("r1", "r3"), ("r1", "r1"), ("r1",)])
def test_names_that_do_not_fit(mdp, names):
    with pytest.raises(arnpg.ObjectiveError, match="names must be two of r1, r2"):
        arnpg.achievable_region(mdp, names)


def test_the_queue_conserves_customers():
    """Long run, little discounting: arrivals minus losses equal services; the buffer bounds who waits."""
    mdp = two_class_queue(discount=0.999)
    solution = arnpg.solve(mdp, arnpg.Linear({"served 1": 1.0, "served 2": 1.0}))
    assert 0.5 < solution.objective < 0.6
    assert all(0 <= solution.values[f"waiting {k}"] <= 8 for k in (1, 2))


def test_one_class_alone_is_the_textbook_queue():
    """Class 2 never arrives: a birth-death chain whose stationary throughput is known in closed form."""
    arrival, service, buffer = 0.3, 0.5, 4
    mdp = two_class_queue((arrival, 0.0), (service, 0.5), buffer, discount=0.99999)
    up, down = arrival * (1 - service), service * (1 - arrival)
    weights = [1.0]
    for count in range(buffer):
        rise = arrival if count == 0 else up
        weights.append(weights[-1] * rise / down)
    # In the full state an arrival after a service is admitted: it leaves with service * (1 - arrival).
    chance = np.array(weights) / np.sum(weights)
    solution = arnpg.solve(mdp, arnpg.Constrained("served 1"))
    assert solution.values["served 1"] == pytest.approx(service * (1 - chance[0]), abs=1e-3)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"arrivals": (0.5,)}, "arrivals must be two probabilities"),
        ({"service": (0.5, 1.5)}, "service must be two probabilities"),
        ({"buffer": 0}, "buffer must be a whole number"),
    ],
)
def test_a_queue_that_is_none(keywords, message):
    with pytest.raises(arnpg.ModelError, match=message):
        two_class_queue(**keywords)
