"""The other end of ``workers``: a process that holds some of the environments, and does what it is told.

Messages are pairs of a command and its arguments, answers pairs of a kind and a value; a closed pipe is the end.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from arnpg.errors import ArnpgError, EnvironmentFault

from .gymnasium_seats import RawStep, Seats

__all__ = ["main"]


def main(descriptor: int) -> None:
    """Answer until the other end is gone."""
    connection, seats = Connection(descriptor), None
    with contextlib.suppress(EOFError, OSError):
        while True:
            command, arguments = pickle.loads(connection.recv_bytes())
            try:
                if command == "open":
                    seats = _open(*arguments)
                    answer: Any = seats.action_space
                else:
                    answer = getattr(seats, command)(*arguments)
                message = _packed(("done", answer))
            except EnvironmentFault as fault:
                message = _packed(("fault", (fault.args, fault.__dict__)))
            except ArnpgError as error:
                message = _packed(("error", (type(error).__name__, str(error))))
            except Exception:
                message = _packed(("error", ("SettingsError", f"a worker failed: {traceback.format_exc()}")))
            connection.send_bytes(message)
    if seats is not None:
        seats.close()


def _open(path: list[str], source: bytes, *arguments: Any) -> Seats:
    import cloudpickle

    sys.path[:] = path
    return Seats(cloudpickle.loads(source), *arguments)


def _packed(answer: tuple[str, Any]) -> bytes:
    try:
        return pickle.dumps(answer)
    except Exception:
        step = answer[1]
        if not isinstance(step, RawStep):
            raise
        return pickle.dumps((answer[0], step._replace(infos=[_plain(info) for info in step.infos])))


def _plain(info: dict[str, Any]) -> dict[str, Any]:
    """The entries that can be sent: an environment may keep its simulator in there."""
    kept = {}
    for key, value in info.items():
        with contextlib.suppress(Exception):
            pickle.dumps(value)
            kept[key] = value
    return kept
