"""One BLAS thread while a small model is solved.

On a busy machine the threads of a BLAS wait for each other: factoring a matrix of 150 rows took 5 ms of CPU time with
two of them, and .08 ms with one. Up to a thousand states one is nearly as quick on an idle machine, too.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator

import scipy.linalg  # noqa: F401 - its BLAS must be loaded before it is looked for
from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]

LARGE = 1000  # states from which threads help an idle machine more than they cost a busy one


@functools.cache
def _controller() -> ThreadpoolController:
    """Finding the libraries takes 10 ms, and is done once."""
    return ThreadpoolController()


@contextlib.contextmanager
def one_blas_thread(states: int) -> Iterator[None]:
    """Hold every BLAS of the process to one thread, for a model of at most ``LARGE`` states; then put back what was.

    The setting is the process's, so only the main thread makes it; OpenBLAS takes it from no other one anyway.
    """
    if states > LARGE or threading.current_thread() is not threading.main_thread():
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield
