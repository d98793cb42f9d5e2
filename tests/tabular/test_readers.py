import io
import pickle
import zipfile

import numpy as np
import pytest

import arnpg
from arnpg.examples import random_cmdp


@pytest.fixture
def mdp():
    generator = np.random.default_rng(1)
    transitions = generator.dirichlet(np.ones(5), size=(5, 3))
    rewards = generator.uniform(size=(2, 5, 3))
    return arnpg.MDP(transitions, rewards, discount=0.9, initial=np.eye(5)[2], names=["a", "b é"])


def same(one, two):
    assert one.names == two.names
    assert one.discount == two.discount
    for name in ("transitions", "rewards", "initial"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_a_model_comes_back_bit_for_bit(mdp, tmp_path):
    arnpg.save_model(mdp, tmp_path / "m.npz")
    same(arnpg.load(tmp_path / "m.npz"), mdp)
    same(arnpg.load_model(str(tmp_path / "m.npz")), mdp)


def test_load_tells_models_and_solutions_apart(mdp, tmp_path):
    solution = arnpg.solve(mdp, arnpg.MaxMin())
    solution.save(tmp_path / "s.npz")
    assert isinstance(arnpg.load(tmp_path / "s.npz"), arnpg.Solution)
    with pytest.raises(arnpg.ModelError, match="holds a solution, not a model"):
        arnpg.load_model(tmp_path / "s.npz")


def test_plain_savez(mdp, tmp_path):
    keys = {"transitions": mdp.transitions, "rewards": mdp.rewards, "discount": 0.9}
    np.savez(tmp_path / "m.npz", **keys, names=np.array(["a", "b é"]), initial=mdp.initial)
    same(arnpg.load(tmp_path / "m.npz"), mdp)
    np.savez_compressed(tmp_path / "less.npz", **keys)
    less = arnpg.load(tmp_path / "less.npz")
    assert less.names == ("objective 1", "objective 2")
    assert less.initial == pytest.approx(np.full(5, 0.2))


def test_one_objective_named_by_a_single_text(tmp_path):
    np.savez(tmp_path / "m.npz", transitions=np.ones((1, 2, 1)), rewards=np.ones((1, 1, 2)), discount=0.5, names="only")
    assert arnpg.load(tmp_path / "m.npz").names == ("only",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"discount": None}, "lacks discount"),
        ({"gamma": 0.9}, "entry 'gamma' that no model has; a model has transitions"),
        ({"reward": np.zeros(1)}, "perhaps you meant 'rewards'"),
        ({"discount": 1.5}, r"m.npz: discount must be in \[0, 1\)"),
        ({"discount": np.array([0.9, 0.8])}, "discount"),
        ({"names": ["a"]}, "names must name each"),
        ({"names": ["a", "a"]}, "repeats 'a'"),
        ({"initial": np.zeros(5)}, "initial must sum to 1"),
        ({"transitions": np.ones((3, 5, 5)) / 5}, "from_action_matrices"),
        ({"rewards": np.ones((5, 3, 2))}, "move the last axis to the front"),
        ({"transitions": np.full((5, 3, 5), "x")}, "must hold real numbers"),
    ],
)
def test_wrong_entries(mdp, tmp_path, change, message):
    entries = {"transitions": mdp.transitions, "rewards": mdp.rewards, "discount": 0.9} | change
    np.savez(tmp_path / "m.npz", **{k: v for k, v in entries.items() if v is not None})
    with pytest.raises(arnpg.ModelError, match=message):
        arnpg.load(tmp_path / "m.npz")


class Payload:
    ran = False

    def __reduce__(self):
        return (_run_payload, ())


def _run_payload():
    Payload.ran = True
    return 0


def test_pickled_objects_never_run(tmp_path):
    objects = np.array([Payload()], dtype=object)
    for name in ("transitions", "names", "header"):
        np.savez(tmp_path / "m.npz", **{name: objects}, allow_pickle=True)
        with pytest.raises(arnpg.ModelError):
            arnpg.load(tmp_path / "m.npz")
    (tmp_path / "plain.npz").write_bytes(pickle.dumps(Payload()))
    with pytest.raises(arnpg.ModelError):
        arnpg.load(tmp_path / "plain.npz")
    assert not Payload.ran
    np.load(tmp_path / "m.npz", allow_pickle=True)["header"]
    assert Payload.ran


def test_claims_of_huge_arrays_are_refused(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10)})
    with zipfile.ZipFile(tmp_path / "m.npz", "w") as archive:
        archive.writestr("transitions.npy", header.getvalue())
    with pytest.raises(arnpg.ModelError, match="claims shape"):
        arnpg.load(tmp_path / "m.npz")


@pytest.mark.parametrize("kind", ["model", "solution"])
def test_damage_anywhere_is_noticed_or_harmless(tmp_path, mdp, kind):
    solution = arnpg.solve(mdp, arnpg.MaxMin())
    arnpg.save_model(mdp, tmp_path / "m.npz") if kind == "model" else solution.save(tmp_path / "m.npz")
    whole = (tmp_path / "m.npz").read_bytes()
    generator = np.random.default_rng(0)
    for _ in range(300):
        part = bytearray(whole)
        if generator.random() < 0.5:
            part[generator.integers(len(part))] ^= 1 << int(generator.integers(8))
        else:
            part = part[: generator.integers(len(part))]
        (tmp_path / "d.npz").write_bytes(part)
        try:
            found = arnpg.load(tmp_path / "d.npz")
        except arnpg.ModelError as error:
            message = str(error)
        else:
            # A bit that says nothing, such as a date in the directory.
            same(found, mdp) if kind == "model" else None
            assert kind == "model" or found.summary() == solution.summary()
            continue
        assert "d.npz" in message


def test_other_kinds_of_paths(tmp_path):
    for path in (tmp_path, tmp_path / "missing.npz", tmp_path / "empty.npz"):
        (tmp_path / "empty.npz").write_bytes(b"")
        with pytest.raises(arnpg.ModelError, match=path.name):
            arnpg.load(path)


gymnasium = pytest.importorskip("gymnasium")


def test_frozen_lake_by_hand():
    mdp = arnpg.from_gymnasium("FrozenLake-v1", discount=0.9)
    assert (mdp.states, mdp.actions, mdp.names) == (17, 4, ("reward",))
    assert mdp.initial[0] == 1
    # From state 14, moving right slips to 10, 14 or the goal with 1/3 each; the goal ends the episode and earns 1.
    assert mdp.rewards[0, 14, 2] == pytest.approx(1 / 3)
    assert mdp.transitions[14, 2, [10, 14, 16]] == pytest.approx(np.full(3, 1 / 3))
    # The absorbing state earns nothing, for ever.
    assert (mdp.transitions[16, :, 16] == 1).all()
    assert (mdp.rewards[:, 16] == 0).all()
    # A hole's own self-loop in the table is an end as well.
    assert mdp.transitions[5, 0, 16] == 1


def value_iteration(table, discount):
    """The textbook's, on the table itself: no value after an end."""
    values = np.zeros(len(table))
    for _ in range(5000):
        values = np.array(
            [
                max(
                    sum(p * (r + discount * (0 if end else values[t])) for p, t, r, end in table[s][a])
                    for a in table[s]
                )
                for s in range(len(table))
            ]
        )
    return values


@pytest.mark.parametrize(("name", "keywords"), [("FrozenLake-v1", {}), ("FrozenLake-v1", {"is_slippery": False})])
def test_the_best_value_is_that_of_the_table(name, keywords):
    env = gymnasium.make(name, **keywords)
    mdp = arnpg.from_gymnasium(env, discount=0.95)
    solution = arnpg.solve(mdp, arnpg.Constrained("reward"))
    best = value_iteration(env.unwrapped.P, 0.95)[0]
    assert solution.values["reward"] == pytest.approx(best, abs=1e-8)


def test_values_after_an_end_are_zero():
    """One state whose only action ends with chance 1/2: the value is the sum of (gamma / 2)^t."""
    table = {0: {0: [(0.5, 0, 1.0, False), (0.5, 0, 1.0, True)]}}

    class Env:
        P = table

    mdp = arnpg.from_gymnasium(Env(), {"twos": lambda s, a, t: 2.0}, discount=0.9)
    values = arnpg.evaluate(mdp, np.ones((2, 1)))
    assert values == pytest.approx({"reward": 1 / 0.55, "twos": 2 / 0.55})


def test_more_objectives():
    mdp = arnpg.from_gymnasium(
        "CliffWalking-v1",
        {"up": lambda s, a, t: float(a == 0), "corner": lambda s, a, t: float(t == 0)},
        discount=0.9,
        reward=None,
    )
    assert mdp.names == ("up", "corner")
    assert mdp.rewards[0, 30, 0] == 1
    assert mdp.rewards[1, 12, 0] == 1
    solution = arnpg.solve(mdp, arnpg.Constrained("corner", at_most={"up": 5.0}))
    assert solution.certified


def test_initial_may_leave_out_the_absorbing_state():
    given = np.eye(16)[3]
    assert arnpg.from_gymnasium("FrozenLake-v1", discount=0.9, initial=given).initial[3] == 1
    with pytest.raises(arnpg.ModelError, match="initial must have shape"):
        arnpg.from_gymnasium("FrozenLake-v1", discount=0.9, initial=np.ones(3))


class Partial:
    P = {0: {0: [(1.0, 0, 0.0, False)]}, 1: {}}


class Gaps:
    P = {0: {0: [(1.0, 0, 0.0, False)]}, 2: {0: []}}


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("CartPole-v1", "has none; FrozenLake-v1"),
        ("FrozenLake-v99", "cannot make"),
        ("NoSuchThing", "cannot make"),
        (object(), "must have a table"),
        (Partial(), r"P\[1\] must have the actions 0 ... 0, got \[\]"),
        (Gaps(), "without a gap"),
    ],
)
def test_environments_without_a_table(env, message):
    with pytest.raises(arnpg.ModelError, match=message):
        arnpg.from_gymnasium(env, discount=0.9)


def test_gymnasium_missing(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(arnpg.ModelError, match=r"arnpg\[gym\]"):
        arnpg.from_gymnasium("FrozenLake-v1", discount=0.9)


def test_the_papers_instance():
    solution = arnpg.solve(random_cmdp(), arnpg.Constrained("r1", at_least={"r2": 3.0}))
    assert solution.objective == pytest.approx(4.46244364, abs=1e-8)
