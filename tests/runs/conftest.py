"""A small run to interrupt, and what two runs must agree in."""

import numpy as np
import pytest
from agreement import first_row

from arnpg import MDP, Constrained
from arnpg.loop import Watch
from arnpg.recipes import tabular as recipes
from arnpg.tabular.exact import occupancy


@pytest.fixture(scope="session")
def tiny():
    """ARNPG-EPD on five states and three actions."""
    draws = np.random.default_rng(3)
    rewards = {name: draws.uniform(size=(5, 3)) for name in ("first", "second")}
    mdp = MDP(draws.dirichlet(np.ones(5), size=(5, 3)), rewards, discount=0.7)
    criterion = Constrained("first", at_least={"second": 1.5}).bind(mdp.names)
    return recipes.arnpg_epd(mdp, criterion, step_size=0.5)


@pytest.fixture(scope="session")
def watch():
    return Watch(mean=occupancy, each=first_row)


class Said:
    """A reporter that remembers."""

    def __init__(self):
        self.lines, self.fractions = [], []

    def update(self, fraction, text=""):
        self.fractions.append(fraction)

    def say(self, text):
        self.lines.append(text)


@pytest.fixture
def said():
    return Said()
