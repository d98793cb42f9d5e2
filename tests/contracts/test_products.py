"""Every method x every inner loop: compiles, equals its uncompiled self, continues exactly, and batches."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from polytope import polytope

from arnpg import Constrained, MaxMin, ProportionalFair
from arnpg.examples import random_cmdp
from arnpg.execution import advance, begin
from arnpg.inner_loop import FixedMicroSteps, ScheduledMicroSteps
from arnpg.loop import run, run_batch
from arnpg.method import Algorithm
from arnpg.methods import CRPO, EPD, FOCOPS, IMD, MONPG, NPGPD, OMDA
from arnpg.tabular.exact import ExactInnerLoop
from arnpg.tabular.sampled import SampledInnerLoop
from arnpg.tabular.simulator import TableSimulator

NAMES = ("first", "second")
STEPS = 40  # the same in every test: how many there may be is part of the compiled program
SUMLOG = ProportionalFair(offset=0.1).bind(NAMES)
WORST = MaxMin().bind(NAMES)


def slowly(step):
    return 1 + step // 10


def limited(threshold):
    return Constrained("first", at_least={"second": threshold}).bind(NAMES)


def methods(threshold, scale=1.0):
    return {
        "imd": IMD(SUMLOG, FixedMicroSteps(2)),
        "epd": EPD(limited(threshold), FixedMicroSteps(1), scale),
        "omda": OMDA(WORST, FixedMicroSteps(2), 0.5 * scale),
        "npg_pd": NPGPD(limited(threshold), FixedMicroSteps(1), scale),
        "crpo": CRPO(limited(threshold), FixedMicroSteps(3), 0.01 * scale),
        "focops": FOCOPS(limited(threshold), FixedMicroSteps(1), scale, 2.0),
        "mo_npg": MONPG(WORST, ScheduledMicroSteps(slowly)),
    }


def inner_loops(mdp):
    short = random_cmdp(states=3, actions=2, discount=0.5)
    return {
        "polytope": (polytope(), 0.6),
        "exact": (ExactInnerLoop(mdp, step_size=0.5, regularisation=0.3), 3.0),
        "sampled": (SampledInnerLoop(TableSimulator(short), 0.3, 0.3, 20), 0.8),
    }


@pytest.fixture(scope="module", params=["polytope", "exact", "sampled"])
def inner(request, paper_mdp):
    return inner_loops(paper_mdp)[request.param]


@pytest.fixture(scope="module", params=["imd", "epd", "omda", "npg_pd", "crpo", "focops", "mo_npg"])
def algorithm(request, inner):
    loop, threshold = inner
    return Algorithm(methods(threshold)[request.param], loop)


@pytest.fixture(scope="module")
def whole(algorithm):
    """Compiled once, for all the tests of an algorithm."""
    return run(algorithm, STEPS)


def leaves(tree):
    def plain(leaf):
        is_key = jax.dtypes.issubdtype(getattr(leaf, "dtype", np.float64), jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if is_key else leaf)

    return [plain(leaf) for leaf in jax.tree.leaves(tree)]


def test_a_chunk_ends_as_it_began(algorithm):
    """Down to weak types, or the second chunk of every run would compile the whole program again."""
    with jax.enable_x64(True):
        before = eqx.filter_eval_shape(begin, algorithm, jax.random.key(0))
        after = eqx.filter_eval_shape(lambda a, c: advance(a, c, 1, 1)[0], algorithm, before)
    for one, two in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        assert (one.shape, one.dtype, one.weak_type) == (two.shape, two.dtype, two.weak_type)


@pytest.mark.parametrize("inner", ["polytope", "exact"], indirect=True, scope="module")
def test_compiled_equals_uncompiled(algorithm, whole):
    """The trace of five steps, with and without jit; 1e-12 leaves room for fused arithmetic only.

    Trajectories take minutes step by step; their estimates have tests of their own.
    """
    with jax.enable_x64(True), jax.disable_jit():
        _, (plain, _) = advance(algorithm, begin(algorithm, jax.random.key(0)), 5, 5)
    for one, two in zip(leaves(whole.trace), leaves(plain), strict=True):
        np.testing.assert_allclose(one[:5], two, rtol=1e-12, atol=1e-12)


def test_a_run_continues_exactly(algorithm, whole):
    """Forty steps and sixteen more are sixteen and forty, to the last bit."""
    late = run(algorithm, STEPS, carry=whole.carry, on_chunk=lambda chunk: True)
    first = run(algorithm, STEPS, on_chunk=lambda chunk: True)
    second = run(algorithm, STEPS, carry=first.carry)
    assert 0 < len(first.trace.values) < STEPS
    for one, two in zip(leaves(late.carry), leaves(second.carry), strict=True):
        np.testing.assert_array_equal(one, two)
    values = [np.concatenate([one.trace.values, two.trace.values]) for one, two in ((whole, late), (first, second))]
    np.testing.assert_array_equal(*values)


def test_other_settings_do_not_compile_again(algorithm, whole, caplog):
    """Step sizes and thresholds are data."""
    changed = jax.tree.map(lambda leaf: 0.9 * leaf if isinstance(leaf, float) else leaf, algorithm)
    with jax.log_compiles(True), caplog.at_level("WARNING"):
        run(changed, STEPS)
    assert "_advance" not in caplog.text


def test_a_batch_equals_its_runs(inner, request):
    """Thresholds, dual steps and step sizes as one call."""
    loop, threshold = inner
    grid = []
    for scale in (0.5, 1.0, 2.0):
        field = "step_size" if hasattr(loop, "step_size") else "regularisation"
        changed = jax.tree.map(lambda leaf: leaf, loop)
        object.__setattr__(changed, field, scale * getattr(loop, field))
        grid.append({n: Algorithm(m, changed) for n, m in methods(threshold * (1 + 0.1 * scale), scale).items()})
    for name in grid[0]:
        key = jax.random.key(0)
        batch = run_batch([point[name] for point in grid], STEPS, keys=jnp.stack([key] * 3)).trace
        for index, point in enumerate(grid):
            alone = run(point[name], STEPS, key=key).trace.values[:6]
            # 1e-9: a batch orders its sums differently, and six steps amplify that a little
            np.testing.assert_allclose(batch.values[index, :6], alone, rtol=1e-9)


def test_a_batch_of_whole_models():
    """Models of one size as a batch axis."""
    algorithms = [
        Algorithm(
            EPD(limited(3.0), FixedMicroSteps(1), 1.0),
            ExactInnerLoop(random_cmdp(seed), step_size=1.0, regularisation=0.2),
        )
        for seed in (10, 11, 12)
    ]
    batch = run_batch(algorithms, 10)
    for index, algorithm in enumerate(algorithms):
        alone = run(algorithm, STEPS).trace.values[:10]
        np.testing.assert_allclose(batch.trace.values[index], alone, rtol=1e-9)


def test_methods_move_towards_the_optimum(algorithm, whole):
    """Forty steps improve on the first: no formula has its sign turned."""
    criterion = algorithm.method.criterion
    values = whole.trace.values
    merit = [float(criterion.value(v) - 10 * criterion.violation(v)) for v in (values[0], values.mean(axis=0))]
    assert merit[1] >= merit[0]


def test_results_are_numpy_and_settings_stay_python(algorithm, whole):
    """No float64 JAX array leaks into the user's float32 world through the trace or the policies."""
    for leaf in jax.tree.leaves((whole.trace, whole.last, whole.best)):
        assert isinstance(leaf, np.ndarray | np.generic)
    assert not jax.config.jax_enable_x64
    assert dataclasses.is_dataclass(algorithm)
