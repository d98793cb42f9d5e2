"""Sparse models from every source: the same model, the same refusals; files that are mapped; memory asked first."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sparse_models import garnet

import arnpg
from arnpg import MDP, ModelError
from arnpg.tabular import assembly, memory

SUCCESSORS, CHANCES, REWARDS = garnet(40, 3, 4, 0)
MATRIX = MDP.from_slots(SUCCESSORS, CHANCES, REWARDS, discount=0.9).transitions
COO = scipy.sparse.coo_array(MATRIX)


def entry(row: int, column: int, value: float) -> scipy.sparse.csr_array:
    """The matrix with one entry set."""
    changed = MATRIX.tolil()
    changed[row, column] = value
    return scipy.sparse.csr_array(changed)


def emptied(row: int) -> scipy.sparse.csr_array:
    """The matrix with one row of zeros."""
    changed = MATRIX.tolil()
    changed[row] = 0
    return scipy.sparse.csr_array(changed)


def test_every_source_gives_the_same_matrix() -> None:
    states, actions = np.divmod(COO.row, 3)
    order = np.random.default_rng(0).permutation(COO.nnz)
    halves = [np.concatenate([part[order], part[order]]) for part in (states, actions, COO.col)]
    chances = np.concatenate([COO.data[order] / 2] * 2)
    models = [
        MDP.from_sparse([scipy.sparse.csc_matrix(MATRIX[a::3]) for a in range(3)], REWARDS, discount=0.9),
        MDP.from_sparse(COO, REWARDS, discount=0.9),
        MDP.from_triples(*halves, chances, REWARDS, discount=0.9),
        MDP(scipy.sparse.csr_array(MATRIX).astype(np.float64), REWARDS, discount=0.9),
    ]
    for mdp in models:
        assert mdp.is_sparse
        assert mdp.transitions.has_canonical_format
        np.testing.assert_allclose(mdp.transitions.toarray(), MATRIX.toarray(), atol=1e-15)
        assert not mdp.transitions.data.flags.writeable
    assert "sparse" in repr(models[0])


def test_changing_matrices_afterwards_has_no_effect() -> None:
    given = scipy.sparse.csr_array(MATRIX).copy()
    mdp = MDP(given, REWARDS, discount=0.9)
    given.data[:] = np.nan
    assert np.isfinite(mdp.transitions.data).all()


WIDE = np.zeros((40, 3), bool)
BAD = [
    (lambda: MDP(entry(7, 5, np.nan), REWARDS, discount=0.9), r"transitions\[2, 1, 5\] must be finite, got nan"),
    (lambda: MDP(entry(7, 5, -1e-3), REWARDS, discount=0.9), r"transitions\[2, 1, 5\] must be >= 0, got -0.001"),
    (lambda: MDP(entry(7, 5, 3.0), REWARDS, discount=0.9), r"\[2, 1\] must sum to 1, got .* \(1 such rows\)"),
    (lambda: MDP(emptied(7), REWARDS, discount=0.9), r"\[2, 1\] must sum to 1, got 0.0.*make it absorbing"),
    (lambda: MDP(emptied(7), REWARDS, discount=0.9, normalize=True), r"transitions\[2, 1\] must sum to 1, got 0.0"),
    (lambda: MDP(MATRIX[:50], REWARDS, discount=0.9), r"must have shape \(S\*A, S\), got \(50, 40\); one matrix per"),
    (lambda: MDP(MATRIX.astype(complex), REWARDS, discount=0.9), r"must hold real numbers, got dtype complex128"),
    (lambda: MDP(MATRIX, REWARDS[:, :, :2], discount=0.9), r"rewards must have shape .* got \(3, 40, 2\)"),
    (lambda: MDP(MATRIX, REWARDS, discount=0.9, allowed=WIDE), r"allowed\[0\] must allow at least one action"),
    (lambda: MDP(MATRIX, REWARDS, discount=0.9, allowed=WIDE.T), r"allowed must be booleans of shape .*\(40, 3\)"),
    (lambda: MDP.from_sparse([MATRIX], REWARDS, discount=0.9), r"matrices must have shape \(S, S\), got \(120, 40\)"),
    (lambda: MDP.from_sparse(5, REWARDS, discount=0.9), r"must be \(S, S\) sparse matrices .*, got int"),
    (lambda: MDP.from_sparse([], REWARDS, discount=0.9), r"must be \(S, S\) sparse matrices of one shape"),
    (lambda: MDP.from_slots(SUCCESSORS[0], CHANCES, REWARDS, discount=0.9), r"both have shape \(S, A, K\)"),
    (lambda: MDP.from_slots(SUCCESSORS + 1, CHANCES, REWARDS, discount=0.9), r"successors\[.*\] must be in \[0, 40\)"),
    (lambda: MDP.from_slots(SUCCESSORS * 1.0, CHANCES, REWARDS, discount=0.9), r"successors must be whole numbers"),
    (lambda: MDP.from_slots(SUCCESSORS, CHANCES + 0j, REWARDS, discount=0.9), r"probabilities must be real numbers"),
    (lambda: MDP.from_triples([0], [0, 1], [0], [1.0], REWARDS, discount=0.9), r"must be arrays of one length"),
    (lambda: MDP.from_triples([0], [3], [0], [1.0], REWARDS, discount=0.9), r"actions\[0\] must be in \[0, 3\), got 3"),
    (lambda: MDP.from_triples([0], [0], [0], [1.0], {}, discount=0.9), r"rewards must hold at least one objective"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_sparse_models_are_refused(make, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make()


def test_rounding_is_cleared_and_rows_are_normalised_only_when_asked() -> None:
    clipped = MDP(entry(7, 5, -1e-17), REWARDS, discount=0.9)
    assert any("negative by rounding" in note for note in clipped.notes)
    assert clipped.transitions.data.min() > 0
    asked = MDP(MATRIX * 0.9, REWARDS, discount=0.9, normalize=True)
    np.testing.assert_allclose(asked.transitions.data, MATRIX.data, rtol=1e-15)


def test_what_is_given_for_forbidden_actions_is_ignored() -> None:
    allowed = np.ones((40, 3), bool)
    allowed[2, 1] = False
    rewards = REWARDS.copy()
    rewards[:, 2, 1] = 1e9
    for rows in (entry(7, 5, 3.0), emptied(7), MATRIX):
        sparse = MDP(rows, rewards, discount=0.9, allowed=allowed)
        dense = MDP(rows.toarray().reshape(40, 3, 40), rewards, discount=0.9, allowed=allowed)
        assert sparse.reward_sizes.max() <= 1
        assert not np.diff(sparse.transitions.indptr)[7]
        assert not dense.transitions[2, 1].any()


def test_memory_is_asked_before_anything_is_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = np.broadcast_to(np.float64(1 / 20000), (20000, 10, 20000))  # 32 GB, of which 8 bytes exist
    monkeypatch.setattr(memory, "available", lambda: 16 * 10**9)
    with pytest.raises(ModelError, match=r"needs 32 GB, and 16 GB of memory are free; .*MDP.from_sparse"):
        MDP(huge, {"a": np.ones((20000, 10))}, discount=0.9)
    monkeypatch.setattr(memory, "available", lambda: 1000)
    for make in (
        lambda: MDP.from_slots(SUCCESSORS, CHANCES, REWARDS, discount=0.9),
        lambda: MDP.from_triples(*np.divmod(COO.row, 3), COO.col, COO.data, REWARDS, discount=0.9),
        lambda: MDP.from_sparse([MATRIX[a::3] for a in range(3)], REWARDS, discount=0.9),
        lambda: MDP.from_lattice((40,), 1, lambda state, action: arnpg.Outcomes([(1.0, state)], {"a": 0}), discount=0),
        lambda: MDP(scipy.sparse.csr_array(MATRIX).copy(), REWARDS, discount=0.9),
    ):
        with pytest.raises(ModelError, match="1 kB of memory are free"):
            make()


def test_a_function_is_enumerated_from_where_it_starts() -> None:
    """A counter that may only stop at 3; the states beyond 5 are never reached."""

    def step(state: int, action: str):
        if action == "stop" and state != 3:
            return None
        following = [state] if action == "stop" or state == 5 else [state + 1, state]
        return following, [1 / len(following)] * len(following), {"steps": 1.0, "stopped": float(action == "stop")}

    mdp = MDP.from_function(step, {0: 0.5, 2: 0.5}, ["go", "stop"], discount=0.9)
    assert mdp.labels == (0, 2, 1, 3, 4, 5)
    assert mdp.names == ("steps", "stopped")
    assert mdp.allowed is not None
    assert mdp.allowed[:, 1].tolist() == [False, False, False, True, False, False]
    best = arnpg.solve(mdp, arnpg.Linear({"stopped": 1.0}))
    reach = 0.45 / (1 - 0.45)  # the discounted probability of one step up
    assert best.objective == pytest.approx(10 * (reach + reach**3) / 2, rel=1e-9)
    with pytest.raises(ModelError, match="reaches more than 3 states; raise max_states"):
        MDP.from_function(step, [0], ["go"], discount=0.9, max_states=3)
    with pytest.raises(ModelError, match=r"function\(0, 'go'\) must return \(successors, probabilities, rewards\)"):
        MDP.from_function(lambda state, action: 1, [0], ["go"], discount=0.9)
    with pytest.raises(ModelError, match="start and actions must each hold at least one"):
        MDP.from_function(step, [0], [], discount=0.9)
    with pytest.raises(ModelError, match="start must be a mapping or a sequence of hashable states, got 5"):
        MDP.from_function(step, 5, ["go"], discount=0.9)
    for outcome in (([1], ["x"], {"a": 1.0}), ([[1]], [1.0], {"a": 1.0}), ([1], [1.0], {"a": "x"})):
        with pytest.raises(ModelError, match=r"function\(0, 'go'\) must give hashable states, and numbers"):
            MDP.from_function(lambda state, action, told=outcome: told, [0], ["go"], discount=0.9)


def test_memory_is_asked_again_while_a_function_is_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "ASK_AGAIN", 100)
    monkeypatch.setattr(memory, "available", lambda: 20_000)
    with pytest.raises(ModelError, match="a function with more than 400 transitions needs 22.4 kB, and 20 kB"):
        MDP.from_function(lambda state, action: ([state + 1], [1.0], {"a": 1.0}), [0], ["go"], discount=0.9)


def outcomes(state, action):
    """Up or down on a line of five."""
    (level,) = state
    up = np.where(level < 4, 0.5 if action else 0.0, 0.0)
    moves = [(up, (level + 1,)), (1 - up, (level,))]
    return arnpg.Outcomes(moves, {"level": level}, allowed=(action == 0) | (level < 4))


def escapes(state, action):
    return arnpg.Outcomes([(1.0, (state[0] + 1,))], {"a": 0})


def halves(state, action):
    return arnpg.Outcomes([(1.0, (state[0] / 2,))], {"a": 0})


def short(state, action):
    return arnpg.Outcomes([(np.ones(2), state)], {"a": 0})


def grows(state, action):
    return arnpg.Outcomes([(1.0, (0, 0))], {"a": 0})


def test_a_lattice_is_written_with_whole_arrays() -> None:
    mdp = MDP.from_lattice((5,), 2, outcomes, discount=0.5, start=(1,))
    assert (mdp.states, mdp.actions, mdp.initial[1]) == (5, 2, 1.0)
    assert mdp.allowed is not None
    assert mdp.allowed[4].tolist() == [True, False]
    assert mdp.transitions.toarray()[3].tolist() == [0, 0.5, 0.5, 0, 0][:1] + [0.5, 0.5, 0, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(shape=(5, 0)), r"shape must hold whole numbers >= 1, got \(5, 0\)"),
        (dict(start=(7,)), r"start must be a state of the box \(5,\), got \(7,\)"),
        (dict(function=lambda state, action: 5), r"function must return arnpg.Outcomes with moves and rewards, got 5"),
        (dict(function=halves), r"coordinate 0 of move 0 of action 0 must be whole, got float64"),
        (dict(function=short), r"the probability of move 0 of action 0 must be .* 5 entries, got shape \(2,\)"),
        (dict(actions=0), r"actions must be a whole number >= 1, got 0"),
        (dict(function=escapes), r"move 0 of action 0 leaves the box"),
        (dict(function=grows), r"a state must have 1 coordinates, got 2"),
    ],
)
def test_bad_lattices_are_refused(change: dict, message: str) -> None:
    words = dict(shape=(5,), actions=2, function=outcomes) | change
    with pytest.raises(ModelError, match=message):
        MDP.from_lattice(**words, discount=0.5)


def test_files_of_sparse_models_come_back_and_large_ones_are_mapped(tmp_path: Path) -> None:
    allowed = np.ones((40, 3), bool)
    allowed[2, 1] = False
    for slots, mapped in ((SUCCESSORS, False), (garnet(60_000, 3, 8, 1)[0], True)):
        states = len(slots)
        chances, rewards = np.full(slots.shape, 1 / slots.shape[2]), np.ones((2, states, 3))
        mask = allowed if not mapped else None
        mdp = MDP.from_slots(slots, chances, rewards, discount=0.9, allowed=mask, names=["a", "b é"])
        arnpg.save_model(mdp, tmp_path / "m.npz")
        same = arnpg.load_model(tmp_path / "m.npz")
        assert (same.transitions != mdp.transitions).nnz == 0
        assert same.names == mdp.names
        np.testing.assert_array_equal(same.rewards, mdp.rewards)
        base = same.transitions.data
        while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap) == mapped
        if not mapped:
            np.testing.assert_array_equal(same.allowed, mask)
        else:
            assert set(np.load(tmp_path / "m.npz").files) >= {"data", "indices", "indptr"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(indices=np.full(MATRIX.nnz, 40)), r"indices must be in \[0, 40\)"),
        (dict(indptr=MATRIX.indptr[:-1]), "are not a compressed sparse matrix of shape"),
        (dict(data=None), "lacks data"),
        (dict(successors=SUCCESSORS), "give the transitions in one form"),
    ],
)
def test_damaged_sparse_files_are_refused(tmp_path: Path, change: dict, message: str) -> None:
    entries = dict(data=MATRIX.data, indices=MATRIX.indices, indptr=MATRIX.indptr, rewards=REWARDS, discount=0.9)
    entries = {name: value for name, value in (entries | change).items() if value is not None}
    if "successors" in change:
        entries["probabilities"] = CHANCES
    np.savez(tmp_path / "m.npz", **entries)
    with pytest.raises(ModelError, match=message):
        arnpg.load(tmp_path / "m.npz")


def test_slots_written_by_numpy_are_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", successors=SUCCESSORS, probabilities=CHANCES, rewards=REWARDS, discount=0.9)
    np.testing.assert_allclose(arnpg.load(tmp_path / "m.npz").transitions.toarray(), MATRIX.toarray(), atol=1e-15)


PRISM = """mdp
const int N;
module queue
  n : [0..N] init 0;
  [fast] n>0 -> 0.7:(n'=n-1) + 0.3:(n'=min(N,n+1));
  [slow] n>0 -> 0.5:(n'=n-1) + 0.5:(n'=min(N,n+1));
  [idle] n=0 -> 0.4:(n'=1) + 0.6:(n'=0);
endmodule
rewards "length" true : n; endrewards
rewards "energy" [fast] true : 3; [slow] true : 1; endrewards
"""


def test_prism_files_are_built_by_storm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "q.prism").write_text(PRISM)
    mdp = MDP.from_prism(tmp_path / "q.prism", {"N": 3}, discount=0.9, rewards=["length", "energy"])
    assert (mdp.states, mdp.actions, mdp.names) == (4, 2, ("length", "energy"))
    assert mdp.allowed is not None
    assert int(mdp.allowed.sum()) == 7
    best = arnpg.solve(mdp, arnpg.Constrained(arnpg.Linear({"length": -1.0}), at_most={"energy": 8.0}))
    assert best.certified
    import stormpy

    jani, _ = stormpy.parse_prism_program(str(tmp_path / "q.prism")).to_jani([])
    (tmp_path / "q.jani").write_text(str(jani))
    same = MDP.from_prism(tmp_path / "q.jani", {"N": 3}, discount=0.9, rewards=["length", "energy"])
    again = arnpg.solve(same, arnpg.Constrained(arnpg.Linear({"length": -1.0}), at_most={"energy": 8.0}))
    assert again.objective == pytest.approx(best.objective, rel=1e-6)
    with pytest.raises(ModelError, match=r"has the reward structures energy, length, not heat"):
        MDP.from_prism(tmp_path / "q.prism", {"N": 3}, discount=0.9, rewards=["heat"])
    with pytest.raises(ModelError, match="does not exist"):
        MDP.from_prism(tmp_path / "none.prism", discount=0.9)
    (tmp_path / "bad.prism").write_text("mdp\nmodule")
    with pytest.raises(ModelError, match="cannot be read by Storm"):
        MDP.from_prism(tmp_path / "bad.prism", discount=0.9)
    monkeypatch.setitem(sys.modules, "stormpy", None)
    with pytest.raises(ModelError, match=r'install it with pip install "arnpg\[storm\]"'):
        MDP.from_prism(tmp_path / "q.prism", {"N": 3}, discount=0.9)
