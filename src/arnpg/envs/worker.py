"""One process with environments, as seen from the run: it answers in time, or it is lost."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from typing import Any

import arnpg.errors
from arnpg.errors import EnvironmentFault, SettingsError

__all__ = ["Worker", "WorkerLost"]

START_SECONDS = 120.0  # to import and to make environments, on a machine that is busy with the others' imports
CLOSE_SECONDS = 2.0
# Not multiprocessing's spawn, which runs the user's script once more in every process.
PROGRAM = "import sys; sys.path[:] = {path!r}; from arnpg.envs.worker_process import main; main({descriptor})"


class WorkerLost(Exception):
    """The process is dead, or did not answer and was killed; the message says which."""


class Worker:
    """A process, begun at once and killed without ceremony."""

    def __init__(self) -> None:
        if os.name == "nt":
            raise SettingsError("workers need Linux or macOS, where a process inherits the end of a pipe; workers=0.")
        self._connection, theirs = multiprocessing.Pipe()
        program = PROGRAM.format(path=sys.path, descriptor=theirs.fileno())
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the run, which closes its workers
                env={**os.environ, "JAX_PLATFORMS": "cpu"},
            )

    def send(self, command: str, *arguments: Any) -> None:
        """Ask; that nobody is there shows when the answer is read."""
        with contextlib.suppress(OSError):
            self._connection.send_bytes(pickle.dumps((command, arguments)))

    def receive(self, seconds: float) -> Any:
        """The answer, or what was raised there; raises ``WorkerLost`` where there is none after ``seconds``."""
        try:
            if not self._connection.poll(seconds):
                self.kill()
                raise WorkerLost(f"its process did not answer within {seconds:g} s, and was killed.")
            kind, value = pickle.loads(self._connection.recv_bytes())
        except (EOFError, OSError) as error:
            self.kill()
            raise WorkerLost(f"its process {_ending(self._process.returncode)}.") from error
        if kind == "fault":
            words, details = value
            raise EnvironmentFault(*words, **details)
        if kind == "error":
            raise getattr(arnpg.errors, value[0])(value[1])
        return value

    def close(self) -> None:
        """Let it close its environments, and end it where it takes too long."""
        self._connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End it now."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._connection.close()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    with contextlib.suppress(ValueError):
        perhaps = ", perhaps for memory" if code == -signal.SIGKILL else ""
        return f"was killed by {signal.Signals(-code).name}{perhaps}"
    return f"was killed by signal {-code}"
