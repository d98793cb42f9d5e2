"""Every method x every inner loop: compiles, equals its uncompiled self, continues exactly, and batches."""

import dataclasses

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
from arnpg.methods import CRPO, EPD, IMD, MONPG, NPGPD, OMDA
from arnpg.tabular.exact import ExactInnerLoop
from arnpg.tabular.sampled import SampledInnerLoop
from arnpg.tabular.simulator import TableSimulator

NAMES = ("first", "second")
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
        "mo_npg": MONPG(WORST, ScheduledMicroSteps(slowly)),
    }


def inner_loops(mdp):
    short = random_cmdp(states=3, actions=2, discount=0.5)
    return {
        "polytope": (polytope(), 0.6),
        "exact": (ExactInnerLoop(mdp, step_size=0.5, regularisation=0.3), 3.0),
        "sampled": (SampledInnerLoop(TableSimulator(short), 0.3, 0.3, 20), 0.8),
    }


@pytest.fixture(params=["polytope", "exact", "sampled"])
def inner(request, paper_mdp):
    return inner_loops(paper_mdp)[request.param]


@pytest.fixture(params=["imd", "epd", "omda", "npg_pd", "crpo", "mo_npg"])
def algorithm(request, inner):
    loop, threshold = inner
    return Algorithm(methods(threshold)[request.param], loop)


def leaves(tree):
    def plain(leaf):
        is_key = jax.dtypes.issubdtype(getattr(leaf, "dtype", np.float64), jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if is_key else leaf)

    return [plain(leaf) for leaf in jax.tree.leaves(tree)]


@pytest.mark.parametrize("inner", ["polytope", "exact"], indirect=True)
def test_compiled_equals_uncompiled(algorithm):
    """The trace of five steps, with and without jit; 1e-12 leaves room for fused arithmetic only.

    Trajectories take minutes step by step; their estimates have tests of their own.
    """
    compiled = run(algorithm, 5).trace
    with jax.enable_x64(True), jax.disable_jit():
        _, (plain, _) = advance(algorithm, begin(algorithm, jax.random.key(0)), 5, 5)
    for one, two in zip(leaves(compiled), leaves(plain), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12)


def test_a_run_continues_exactly(algorithm):
    """Eight steps and twelve more are twenty, to the last bit."""
    whole = run(algorithm, 20)
    first = run(algorithm, 8)
    second = run(algorithm, 12, carry=first.carry)
    for one, two in zip(leaves(whole.carry), leaves(second.carry), strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(whole.trace.values, np.concatenate([first.trace.values, second.trace.values]))


def test_other_settings_do_not_compile_again(algorithm, caplog):
    """Step sizes and thresholds are data."""
    run(algorithm, 3)
    changed = jax.tree.map(lambda leaf: 0.9 * leaf if isinstance(leaf, float) else leaf, algorithm)
    with jax.log_compiles(True), caplog.at_level("WARNING"):
        run(changed, 3)
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
        batch = run_batch([point[name] for point in grid], 6, keys=jnp.stack([key] * 3)).trace
        for index, point in enumerate(grid):
            # 1e-9: a batched factorisation orders its sums differently, and six steps amplify that a little
            np.testing.assert_allclose(batch.values[index], run(point[name], 6, key=key).trace.values, rtol=1e-9)


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
        np.testing.assert_allclose(batch.trace.values[index], run(algorithm, 10).trace.values, rtol=1e-9)


def test_methods_move_towards_the_optimum(algorithm):
    """Forty steps improve on the first: no formula has its sign turned."""
    criterion = algorithm.method.criterion
    values = run(algorithm, 40).trace.values
    merit = [float(criterion.value(v) - 10 * criterion.violation(v)) for v in (values[0], values.mean(axis=0))]
    assert merit[1] >= merit[0]


def test_results_are_numpy_and_settings_stay_python(algorithm):
    """No float64 JAX array leaks into the user's float32 world through the trace or the policies."""
    found = run(algorithm, 2)
    for leaf in jax.tree.leaves((found.trace, found.last, found.best)):
        assert isinstance(leaf, np.ndarray | np.generic)
    assert not jax.config.jax_enable_x64
    assert dataclasses.is_dataclass(algorithm)
