"""A signal is answered within two seconds, also while a compiled call that cannot be interrupted is running.

Python's handlers run between two bytecodes of the main thread, and compilation may keep that thread for ten seconds.
The operating system's part of a handler, which writes a byte into a pipe, runs at once; a thread reads that byte, gives
the main thread time to end in order, and ends the process if it has not. What is on the disk is written atomically.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

from arnpg.cli.terminal import complain

__all__ = ["patient"]

SECONDS = 1.5


@contextlib.contextmanager
def patient(farewell: str, seconds: float = SECONDS) -> Iterator[None]:
    """End the process ``seconds`` after SIGINT or SIGTERM unless this block has ended by then."""
    if threading.current_thread() is not threading.main_thread() or os.name == "nt":
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(reader, over, farewell, seconds), daemon=True)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        os.close(writer)
        watcher.join()
        os.close(reader)


def _watch(reader: int, over: threading.Event, farewell: str, seconds: float) -> None:
    """Read signal numbers until the pipe is closed."""
    while byte := os.read(reader, 1):
        if byte[0] not in (signal.SIGINT, signal.SIGTERM):
            continue
        if not over.wait(seconds):
            complain(farewell)
            os._exit(128 + byte[0])
        return
