"""The exact models of MO-Gymnasium's environments: their totals are those that the environments themselves pay."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arnpg
from arnpg.envs import make_host
from arnpg.evaluation import Notion, play
from arnpg.experiments.mo_models import OVER, exact_totals, fishwood, fruit_tree
from arnpg.experiments.mo_problems import Problem, loss, objective, smooth_minimum, train
from arnpg.neural.networks import Network, make_policy
from arnpg.neural.proximal import Passes
from arnpg.neural.rollout import Rollout
from arnpg.neural.standardise import Standardised
from arnpg.neural.values import EpisodeTotal

CASES = {"fishwood-v0": (fishwood, 200, 200), "fruit-tree-v0": (fruit_tree, 6, 800)}


def a_policy(env, scale):
    """Far from uniform, so that what it is worth depends on every state."""
    size, network = env.observation_size, Network((16,), jnp.tanh, output_scale=scale)
    return Standardised(make_policy(jax.random.key(2), network, size, env.actions), jnp.ones(size), jnp.full(size, 0.3))


@pytest.mark.parametrize("name", CASES)
def test_exact_totals_are_those_of_played_episodes(name):
    make, limit, episodes = CASES[name]
    env, known = make_host(name, time_limit=limit), make()
    assert known.mdp.names == env.names
    policy = a_policy(env, 8.0)
    notion = Notion((EpisodeTotal(),) * len(env.names), limit, 0.99)
    totals, lengths = play(env, policy, notion, episodes, 5, False)
    assert (lengths == limit).all()
    errors = totals.std(axis=0, ddof=1) / np.sqrt(episodes)
    exact = exact_totals(known, policy)
    assert (np.abs(totals.mean(axis=0) - exact) < 4 * errors + 1e-9).all()
    uniform = arnpg.evaluate(known.mdp, np.full((known.mdp.states, 2), 0.5))
    assert np.abs(exact - np.array(list(uniform.values()))).max() > 5 * errors.max()  # or the test would see little


@pytest.mark.parametrize("name", CASES)
def test_the_model_shows_what_the_environment_shows(name):
    make, limit, _ = CASES[name]
    env, known = make_host(name, time_limit=limit), make()
    shown = {label: row for label, row in zip(known.mdp.labels, known.observations, strict=True) if label != OVER}
    assert {time for time, _ in shown} == set(range(limit))
    with env.open(8, 1) as live:
        seen = live.reset()
        for time, actions in enumerate(np.random.default_rng(0).integers(0, 2, (limit, 8))):
            of_now = np.array([row for label, row in shown.items() if label[0] == time])
            assert all((of_now == row).all(axis=1).any() for row in seen)
            seen = live.step(actions).observations


def test_optima_by_hand():
    """A share x of the 199 choices goes to the woods: (.1 (199 - n), .9 (1 + n)) on average."""
    mdp = fishwood().mdp
    fair, least = (arnpg.solve(mdp, criterion) for criterion in (arnpg.ProportionalFair(), arnpg.MaxMin()))
    assert fair.certified
    assert least.certified
    np.testing.assert_allclose(list(fair.values.values()), [10, 90], rtol=1e-3)
    np.testing.assert_allclose(fair.objective, np.log(900), rtol=1e-6)
    np.testing.assert_allclose(least.objective, 18, rtol=1e-6)


def test_the_optimum_of_the_tree_is_a_mixture_of_its_leaves():
    """Every policy is one, and every mixture has a policy: a linear program over leaves."""
    import mo_gymnasium
    from scipy.optimize import linprog

    leaves = np.array(mo_gymnasium.make("fruit-tree-v0").unwrapped.tree[-64:], float)
    above = np.hstack([-leaves.T, np.ones((6, 1))])
    found = linprog(np.r_[np.zeros(64), -1], A_ub=above, b_ub=np.zeros(6), A_eq=[[1.0] * 64 + [0.0]], b_eq=[1.0])
    np.testing.assert_allclose(arnpg.solve(fruit_tree().mdp, arnpg.MaxMin()).objective, -found.fun, rtol=1e-5)


def test_what_a_run_spends_and_misses():
    criteria = {"fairness": arnpg.ProportionalFair(), "max-min": arnpg.MaxMin()}
    trained = {"fairness": arnpg.ProportionalFair(), "max-min": smooth_minimum(1.0)}
    env = make_host("fishwood-v0", time_limit=200)
    small = {"policy": Network((4,)), "critic": Network((4,))}
    problem = Problem(env, criteria, trained, Rollout(2, 200), 900, Passes(), small, fishwood())
    found = train(problem, "max-min", [3], 1)
    assert found["values"].shape == (1, 2, 2)
    assert found["final"].shape == (1, 2)
    np.testing.assert_allclose(found["final"][0] @ [10, 1 / 0.9], 200, rtol=1e-5)  # all time is spent in either place
    reached = objective(problem, "fairness", np.array([[5.0, 90.0]]))
    np.testing.assert_allclose(loss(problem, "fairness", reached, np.log(900)), 1 - np.sqrt(0.5))
    np.testing.assert_allclose(loss(problem, "max-min", np.array([9.0]), 18.0), 0.5)


def test_the_smooth_minimum_is_close_below_the_minimum():
    values = np.array([3.0, 3.1, 40.0])
    smooth = smooth_minimum(0.5).bind(("a", "b", "c")).objective
    assert 3.0 - 0.5 * np.log(3) < float(smooth.value(values)) < 3.0
    np.testing.assert_allclose(smooth.gradient(values), jax.nn.softmax(-values / 0.5), atol=1e-6)
