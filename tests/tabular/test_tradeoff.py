"""Trade-offs: every point is certified, curves have the shape that convexity demands, and pictures are drawn."""

from __future__ import annotations

import numpy as np
import pytest

import arnpg
from arnpg.examples import multiclass_queue, random_cmdp


@pytest.fixture(scope="module")
def queue() -> arnpg.MDP:
    return multiclass_queue(343)


def test_the_optimum_is_concave_in_the_limit_and_its_price_is_the_slope(queue: arnpg.MDP, tmp_path) -> None:
    """Each point equals a solve of its own; the multiplier is a supergradient of the optimum, up to the gaps."""
    criterion = arnpg.Constrained("served 1", at_most={"waiting": 5.0})
    limits = [8.0, 0.5, 3.0, 2.5, 5.0]
    found = arnpg.tradeoff(queue, criterion, sweep={"waiting": limits})
    assert found.certified
    assert found.solutions[1] is None
    assert np.isnan(found.objective[1])
    assert found.bound[1] == -np.inf
    alone = arnpg.solve(queue, arnpg.Constrained("served 1", at_most={"waiting": 3.0}))
    assert found.solutions[2].objective == pytest.approx(alone.objective, abs=alone.gap + found.solutions[2].gap)
    known = [place for place in range(5) if place != 1]
    for place in known:
        price = next(iter(found.solutions[place].multipliers.values()))
        above = found.objective[place] + price * (np.array(limits) - limits[place])
        slack = 10 * found.solutions[place].gap + 1e-6
        assert all(found.objective[other] <= above[other] + slack for other in known)
    found.plot(tmp_path / "sweep.png")
    assert (tmp_path / "sweep.png").stat().st_size > 10_000


@pytest.mark.parametrize("names", [("served 1", "-waiting"), ("served 1", "served 2", "-waiting")])
def test_no_point_of_a_surface_lies_beyond_the_bound_of_another(queue: arnpg.MDP, names, tmp_path) -> None:
    found = arnpg.tradeoff(queue, names, points=5)
    assert found.certified
    signs = [-1.0 if name.startswith("-") else 1.0 for name in names]
    values = np.stack([sign * found.values(name.removeprefix("-")) for name, sign in zip(names, signs, strict=True)])
    assert (found.levels @ values <= found.bound[:, None] + 1e-12).all()
    assert len(found.solutions) == {2: 5, 3: 15}[len(names)]
    found.plot(tmp_path / "front.png")
    assert (tmp_path / "front.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("over", "words", "message"),
    [
        (("r1",), {}, r"over must name two or three different objectives, got r1"),
        ("r1", {}, r"over must be a list of two or three names, or a Constrained criterion, got 'r1'"),
        (arnpg.MaxMin(), {}, r"or a Constrained criterion, got MaxMin"),
        (arnpg.Constrained("r1", at_least={"r2": 3.0}), dict(sweep={"r2": ["x"]}), r"must be a list of finite limits"),
        (("r1", "-r1"), {}, r"two or three different objectives"),
        (("r1", "r3"), {}, r"'r3', but the model's objectives are r1, r2"),
        (("r1", "r2"), dict(points=1), r"points must be a whole number >= 2, got 1"),
        (("r1", "r2"), dict(sweep={"r2": [1.0]}), r"sweep goes with a Constrained criterion"),
        (arnpg.Constrained("r1", at_least={"r2": 3.0}), {}, r"sweep must map one limited objective to its limits"),
        (arnpg.Constrained("r1", at_least={"r2": 3.0}), dict(sweep={"r1": [1.0]}), r"sweep names 'r1', which must"),
        (arnpg.Constrained("r1", at_least={"r2": 3.0}), dict(sweep={"r2": []}), r"must be a list of finite limits"),
    ],
)
def test_bad_questions_are_refused(over, words: dict, message: str) -> None:
    with pytest.raises(arnpg.ArnpgError, match=message):
        arnpg.tradeoff(random_cmdp(), over, **words)
