"""Shapes in signatures are checked while the tests run; shared models are here."""

import gc
import pathlib

import jax
import jaxtyping

jaxtyping.install_import_hook(
    ["arnpg.method", "arnpg.methods", "arnpg.inner_loop", "arnpg.tabular.exact"], "beartype.beartype"
)

import numpy as np  # noqa: E402
import pytest  # noqa: E402

from arnpg import MDP  # noqa: E402

MAPS = pathlib.Path("/proc/self/maps")


@pytest.fixture(scope="module", autouse=True)
def _few_memory_maps():
    """Every compiled program holds maps of memory, and Linux allows a process 65,530; past that, compiling crashes."""
    yield
    if MAPS.exists() and MAPS.read_text().count("\n") > 20_000:
        jax.clear_caches()
        gc.collect()


def paper_model(seed: int = 10) -> MDP:
    """The random MDP of Appendix A.1; seed 10 is the published instance."""
    draws = np.random.RandomState(seed)
    states, actions = 20, 10
    raw = draws.uniform(size=(states * actions, states))
    rewards = {name: draws.uniform(size=states * actions).reshape(states, actions) for name in ("first", "second")}
    transitions = (raw / raw.sum(axis=1, keepdims=True)).reshape(states, actions, states)
    return MDP(transitions, rewards, discount=0.8)


@pytest.fixture(scope="session")
def paper_mdp() -> MDP:
    """The published instance."""
    return paper_model()


@pytest.fixture(scope="session")
def small_mdp() -> MDP:
    """Five states, three actions, three rewards: small enough for explicit Fisher matrices."""
    draws = np.random.default_rng(3)
    transitions = draws.dirichlet(np.ones(5), size=(5, 3))
    rewards = {name: draws.uniform(size=(5, 3)) for name in ("first", "second", "third")}
    return MDP(transitions, rewards, discount=0.7, initial=draws.dirichlet(np.ones(5)))
