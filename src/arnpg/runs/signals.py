"""SIGINT and SIGTERM while a run is under way: the first asks it to stop at the end of its chunk, the second ends it.

When the run has stopped, the signal is raised again under the handlers that were there before, so that the program
around it ends as it would have: ``KeyboardInterrupt``, exit code 130 or 143, or whatever the user's handler does.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

__all__ = ["Stop", "listening"]


class Stop:
    """Whether a signal has come; ``patient`` once there is something to save, before that a signal ends at once."""

    def __init__(self) -> None:
        """No signal yet."""
        self.requested: int | None = None
        self.patient = False
        self.before: dict[int, Any] = {}

    def handle(self, number: int, frame: Any) -> None:
        """Note the first signal, pass on the second."""
        del frame
        impatient = self.requested is not None or not self.patient
        self.requested = number
        if impatient:
            self.restore()
            signal.raise_signal(number)

    def restore(self) -> None:
        """Put the handlers back that were there before."""
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before = {}

    def deliver(self) -> None:
        """Raise the noted signal again, now that everything is saved."""
        if self.requested is not None:
            signal.raise_signal(self.requested)
            raise KeyboardInterrupt  # a handler that only looked on: the run is not finished all the same


@contextlib.contextmanager
def listening() -> Iterator[Stop]:
    """Listen to SIGINT and SIGTERM in the main thread; signals that the program ignores stay ignored."""
    stop = Stop()
    try:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if handler is not None and handler != signal.SIG_IGN:
                    stop.before[number] = handler
                    signal.signal(number, stop.handle)
        yield stop
    finally:
        stop.restore()
