"""How much memory there is, asked before anything big is allocated: a refusal is better than a killed process."""

from __future__ import annotations

import os

from arnpg.errors import ModelError

__all__ = ["available", "readable", "require"]

SHARE = 0.6  # of the free memory: solving needs room beside the model


def available() -> int | None:
    """Bytes that a process may still take without swapping; none where the system does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def require(size: float, what: str, cure: str) -> None:
    """Refuse what needs more than ``SHARE`` of the free memory.

    Raises:
        ModelError: with the estimate, what is free, and the ``cure``.
    """
    free = available()
    if free is not None and size > SHARE * free:
        raise ModelError(f"{what} needs {readable(size)}, and {readable(free)} of memory are free; {cure}.")


def readable(count: float) -> str:
    """``3.2 GB``."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
