"""Small models are solved on one BLAS thread, and the process gets its own setting back."""

import threading

import numpy as np
import pytest
from models import dense_model
from threadpoolctl import ThreadpoolController, threadpool_limits

import arnpg
from arnpg.tabular.blas import LARGE, one_blas_thread


def threads() -> set[int]:
    return {library["num_threads"] for library in ThreadpoolController().info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


def test_one_thread_inside_and_what_was_there_afterwards():
    with one_blas_thread(20), one_blas_thread(20):
        assert threads() == {1}
    assert threads() == {2}
    with one_blas_thread(LARGE + 1):
        assert threads() == {2}
    with pytest.raises(arnpg.ModelError, match="stop"), one_blas_thread(20):
        raise arnpg.ModelError("stop")
    assert threads() == {2}


def test_other_threads_leave_it_alone():
    seen = []

    def other() -> None:
        with one_blas_thread(20):
            seen.append(threads())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [{2}]


def test_solving_evaluating_and_tracing_a_curve_hold_it():
    mdp, seen = dense_model(6, 2, 2, seed=0), []
    names = mdp.names
    arnpg.solve(mdp, arnpg.MaxMin(), progress=lambda _: seen.append(threads()))
    assert seen
    assert all(found == {1} for found in seen)
    arnpg.evaluate(mdp, np.full((6, 2), 0.5))
    arnpg.tradeoff(mdp, names[:2], points=2)
    arnpg.achievable_region(mdp)
    assert threads() == {2}
