"""Bad models, objectives and settings: each is refused with the argument, the place, the value and the cure."""

from __future__ import annotations

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models import dense_model

import arnpg
from arnpg import MDP, Concave, Constrained, Linear, MaxMin, ModelError, ObjectiveError, ProportionalFair, SettingsError
from arnpg.objective_check import check_objective

P = np.full((2, 3, 2), 0.5)
R = {"a": np.array([[1.0, 0, 0], [0, 1, 0]]), "b": np.array([[0, 1.0, 0], [0, 0, 1]])}


def changed(array: np.ndarray, place: tuple, value: float) -> np.ndarray:
    copy = array.copy()
    copy[place] = value
    return copy


def model(transitions=P, rewards=R, discount=0.9, **keywords) -> MDP:
    return MDP(transitions, rewards, discount=discount, **keywords)


ABSORBED = P.copy()
ABSORBED[1, 2] = 0.0

BAD_MODELS = [
    (dict(transitions=changed(P, (1, 2, 0), 0.47)), r"transitions\[1, 2\] must sum to 1, got 0.970000 \(1 such rows\)"),
    (dict(transitions=changed(P, (0, 0, 1), -1e-3)), r"transitions\[0, 0, 1\] must be >= 0, got -0.001"),
    (dict(transitions=changed(P, (1, 0, 1), np.nan)), r"transitions\[1, 0, 1\] must be finite, got nan"),
    (dict(transitions=changed(P, (1, 0, 1), np.inf)), r"transitions\[1, 0, 1\] must be finite, got inf"),
    (dict(transitions=np.full((3, 2, 2), 0.5)), r"must have shape \(S, A, S\), got \(3, 2, 2\).*from_action_matrices"),
    (dict(transitions=np.full((6, 2), 0.5)), r"got \(6, 2\); reshape rows"),
    (dict(transitions=[[[0.5, 0.5]], [[1.0]]]), r"transitions must be a rectangular array of numbers"),
    (dict(transitions=P.astype(object)), r"transitions must hold real numbers, got dtype object"),
    (dict(transitions=np.zeros((0, 0, 0))), r"at least one state and one action"),
    (dict(transitions=np.zeros((2, 0, 2))), r"at least one state and one action"),
    (dict(transitions=ABSORBED), r"transitions\[1, 2\] must sum to 1.*absorbing with transitions\[s, a, s\] = 1"),
    (dict(initial=[0.5, 0.6]), r"initial must sum to 1, got 1.100000"),
    (dict(initial=[1.0]), r"initial must have shape \(S,\) = \(2,\), got \(1,\)"),
    (dict(initial=[1.5, -0.5]), r"initial\[1\] must be >= 0, got -0.5"),
    (dict(initial=[np.nan, 1.0]), r"initial\[0\] must be finite, got nan"),
    (dict(rewards=R["a"]), r"got \(2, 3\); give one table a name"),
    (dict(rewards=np.zeros((2, 3, 2))), r"rewards must have shape \(m, S, A\) = \(m, 2, 3\), got \(2, 3, 2\); move"),
    (
        dict(rewards={"a": np.zeros((3, 2))}),
        r"rewards\['a'\] must have shape \(S, A\) = \(2, 3\), got \(3, 2\); transpose",
    ),
    (dict(rewards={"a": changed(R["a"], (0, 1), np.nan)}), r"rewards\['a'\]\[0, 1\] must be finite, got nan"),
    (dict(rewards={}), r"at least one objective, got none"),
    (dict(rewards=np.zeros((0, 2, 3))), r"at least one objective, got none"),
    (dict(rewards=np.zeros((2, 2, 3)), names=["a", "a"]), r"names\[1\] repeats 'a'"),
    (dict(rewards={" ": R["a"]}), r"names\[0\] must be a name, got ' '"),
    (dict(discount=1), r"discount must be below 1, got 1; average-reward problems are out of scope"),
    (dict(discount=-0.1), r"discount must be in \[0, 1\), got -0.1"),
    (dict(discount=1.5), r"discount must be in \[0, 1\), got 1.5"),
    (dict(discount=float("nan")), r"discount must be in \[0, 1\), got nan"),
    (dict(discount="high"), r"discount must be a number in \[0, 1\), got 'high'"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_MODELS)
def test_bad_models_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        model(**arguments)


def test_rounding_is_cleared_with_a_note_and_rows_are_normalised_only_when_asked() -> None:
    clipped = changed(changed(P, (0, 0, 0), -1e-17), (0, 0, 1), 1.0)
    assert any("negative by rounding" in note for note in model(clipped).notes)
    asked = model(P * 0.9, normalize=True)
    np.testing.assert_allclose(asked.transitions, P, rtol=1e-15)
    assert any("normalised, as asked" in note for note in asked.notes)


@pytest.mark.parametrize("kind", [np.float32, int, list])
def test_other_number_types_become_float64(kind: type) -> None:
    moves = np.stack([np.eye(2)] * 3, axis=1)
    given = moves.tolist() if kind is list else moves.astype(kind)
    assert model(given).transitions.dtype == np.float64


def test_extremes_are_noted_and_certified() -> None:
    assert any("outside [0, 1]" in note for note in model(rewards={"a": R["a"] * 5}).notes)
    uneven = model(rewards={"a": R["a"] * 1e9, "b": R["b"]})
    assert any("ill-conditioned" in note for note in uneven.notes)
    assert arnpg.solve(uneven, Constrained("a", at_least={"b": 2.0})).certified
    slow = model(discount=0.9999999)
    assert any("ill-conditioned" in note for note in slow.notes)
    assert arnpg.solve(slow, Linear({"a": 1.0})).certified
    huge = model(rewards={"a": R["a"] * 1e12, "b": R["b"] * 1e12})
    assert arnpg.solve(huge, MaxMin()).certified


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (4, 1)])
def test_the_smallest_models_work(shape: tuple[int, int]) -> None:
    states, actions = shape
    mdp = dense_model(states, actions, 1, seed=0)
    solution = arnpg.solve(mdp, MaxMin())
    assert solution.certified
    assert arnpg.evaluate(mdp, solution.policy) == pytest.approx(solution.values, rel=1e-12)


def test_no_control_has_no_gap_and_discount_zero_is_one_step() -> None:
    constant = model(rewards={"a": np.full((2, 3), 0.3), "b": np.full((2, 3), 0.2)})
    solution = arnpg.solve(constant, ProportionalFair())
    assert solution.gap == pytest.approx(0, abs=1e-12)  # rounding of values near 3
    assert arnpg.solve(model(discount=0), Linear({"a": 1})).objective == pytest.approx(1.0, abs=1e-15)


def test_changing_arrays_afterwards_has_no_effect() -> None:
    moves, reward, start = P.copy(), R["a"].copy(), np.array([0.5, 0.5])
    mdp = model(moves, {"a": reward}, initial=start)
    before = arnpg.solve(mdp, Linear({"a": 1.0})).objective
    moves[:], reward[:], start[:] = np.nan, np.nan, np.nan
    assert arnpg.solve(mdp, Linear({"a": 1.0})).objective == before
    with pytest.raises(ValueError, match="read-only"):
        mdp.transitions[0, 0, 0] = 1.0


BAD_CRITERIA = [
    (lambda: Constrained("a", at_least={"b": float("nan")}), r"at_least\['b'\] must be a finite number, got nan"),
    (lambda: Constrained("a", at_most={"b": float("inf")}), r"at_most\['b'\] must be a finite number, got inf"),
    (lambda: Constrained("a", at_least=[1.0, 2.0]), r"at_least must map names to limits"),
    (lambda: Constrained("a", at_least={"c": 1.0}), r"at_least names 'c', but the model's objectives are a, b"),
    (lambda: Constrained("c"), r"maximize names 'c', but the model's objectives are a, b\."),
    (lambda: Linear({"a ": 1.0}), r"Linear weights names 'a ', .* are a, b; perhaps you meant 'a'\?"),
    (lambda: Constrained(Constrained("a")), r"maximize must not be Constrained itself"),
    (lambda: ProportionalFair({"a": 0.0}), r"ProportionalFair weights\['a'\] must be > 0, got 0.0"),
    (lambda: ProportionalFair(offset=-1.0), r"offset must be a finite number >= 0, got -1.0"),
    (lambda: MaxMin({"a": -1.0}), r"MaxMin scales\['a'\] must be > 0, got -1.0"),
    (lambda: Linear({}), r"Linear weights must map at least one objective"),
    (lambda: Linear({"a": float("nan")}), r"Linear weights\['a'\] must be a finite number"),
    (lambda: Concave(lambda v: v), r"the function must return one number, got shape \(2,\)"),
    (lambda: Concave(lambda v: v[0] / len(v.nothing)), r"the function failed on an array of shape \(2,\)"),
]


@pytest.mark.parametrize(("make", "message"), BAD_CRITERIA)
def test_bad_criteria_are_refused(make, message: str) -> None:
    with pytest.raises(ObjectiveError, match=message):
        arnpg.solve(model(), make())


def test_infeasible_limits_are_refused_at_once_and_barely_feasible_ones_are_noted() -> None:
    with pytest.raises(arnpg.InfeasibleError, match="least violation reachable is 90"):
        arnpg.solve(model(), Constrained("a", at_least={"b": 100.0}))
    solution = arnpg.solve(model(), Constrained("a", at_least={"b": 10.0 - 1e-12}))
    assert any("only just feasible" in note for note in solution.notes)
    assert solution.violation <= 1e-7  # 1e-8 of the range of ten
    assert np.isfinite(list(solution.multipliers.values())).all()


def test_a_logarithm_of_nothing_names_the_objective() -> None:
    for level in (0.0, -1.0):
        mdp = model(rewards={"a": R["a"], "b": np.full((2, 3), level)})
        with pytest.raises(ObjectiveError, match="needs a positive value of 'b', and no policy reaches one"):
            arnpg.solve(mdp, ProportionalFair())


def not_a_number(values):
    return jnp.sqrt(values[0] - 100.0)


def convex(values):
    return (values**2).sum()


def concave(values):
    return -((values - 1) ** 2).sum()


def test_a_function_that_is_no_number_is_refused_with_round_and_values() -> None:
    with pytest.raises(ObjectiveError, match=r"round 0: the objective .* at values"):
        arnpg.solve(model(), Concave(not_a_number))


def test_a_convex_function_is_noted_and_never_certified() -> None:
    solution = arnpg.solve(model(), Concave(convex))
    assert any("not concave" in note for note in solution.notes)
    assert not solution.certified


@jax.custom_jvp
def wrong_slope(values):
    return -((values - 1) ** 2).sum()


wrong_slope.defjvp(lambda primals, tangents: (wrong_slope(*primals), 3 * tangents[0].sum()))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (convex, "not concave: between"),
        (not_a_number, "the function is nan at values"),
        (wrong_slope, "gives a slope of"),
    ],
)
def test_check_objective_finds_faults(function, message: str) -> None:
    with pytest.raises(ObjectiveError, match=message):
        check_objective(Concave(function), ["a", "b"], low=0.0, high=5.0)


def test_check_objective_passes_sound_functions() -> None:
    check_objective(Concave(concave), ["a", "b"], high=5.0)
    check_objective(ProportionalFair(offset=0.1), ["a", "b"], high=5.0)
    check_objective(MaxMin(), ["a", "b"], high=5.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(gap=0), r"gap must be in \(0, 1\), got 0"),
        (dict(gap=float("nan")), r"gap must be in \(0, 1\), got nan"),
        (dict(steps=0), r"steps must be a whole number >= 1, got 0"),
        (dict(steps=2.5), r"steps must be a whole number >= 1, got 2.5"),
        (dict(time_limit=-1), r"time_limit must be > 0 seconds, got -1"),
        (dict(method="newton"), r"method must be one of arnpg, .*got 'newton'"),
        (dict(step_size=1.0), r"'step_size' is not a setting of 'arnpg'"),
        (dict(method="arnpg-epd", step_size=-1.0), r"step_size must be"),
        (dict(method="arnpg-epd", step_size=float("nan")), r"step_size must be"),
        (dict(method="arnpg-epd", regularisation=0.0), r"regularisation must be"),
        (dict(method="arnpg-epd", micro_steps=0), r"micro_steps must be a whole number >= 1, got 0"),
    ],
)
def test_bad_settings_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        arnpg.solve(model(), Constrained("a", at_least={"b": 2.0}), **settings)


def test_settings_outside_the_theory_are_noted_and_huge_steps_stay_finite() -> None:
    criterion = Constrained("a", at_least={"b": 2.0})
    solution = arnpg.solve(model(), criterion, method="arnpg-epd", step_size=1e4, steps=5)
    assert np.isfinite(solution.trace.values).all()
    loose = arnpg.solve(model(), criterion, method="arnpg-epd", step_size=2.0, regularisation=1.0, steps=3)
    assert any("theory: not guaranteed" in note for note in loose.notes)
    assert np.isfinite(loose.trace.kl).all()


def test_global_state_is_left_alone() -> None:
    before, config = np.random.get_state()[1].copy(), jax.config.values.copy()
    for criterion in (MaxMin(), ProportionalFair(), Concave(concave), Constrained("a", at_least={"b": 2.0})):
        arnpg.solve(model(), criterion)
    arnpg.solve(model(), MaxMin(), method="arnpg-omda", steps=3)
    check_objective(Concave(concave), ["a", "b"])
    assert (np.random.get_state()[1] == before).all()
    assert jax.config.values == config


def test_two_threads_give_what_one_gives() -> None:
    problems = [(dense_model(12, 4, 3, seed), c) for seed in range(4) for c in (MaxMin(), Concave(concave))]
    serial = [arnpg.solve(*problem).objective for problem in problems]
    answers: dict[int, list[float]] = {}

    def work(place: int) -> None:
        answers[place] = [arnpg.solve(*problem).objective for problem in problems]

    threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers[0] == answers[1] == serial
