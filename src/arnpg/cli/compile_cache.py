"""XLA's persistent compilation cache, for the command line only: the second run of a command need not compile."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from arnpg.cli.terminal import complain

__all__ = ["cache_folder", "compile_cache"]

SMALLEST_SECONDS = 0.2


def cache_folder() -> Path:
    """``arnpg/xla/MACHINE`` in the user's cache folder; home folders are shared by machines that differ."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "arnpg" / "xla" / _machine()


def _machine() -> str:
    """A word for this kind of processor: compiled code may need what another lacks."""
    words = [platform.system(), platform.machine(), platform.processor()]
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        words += sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))})
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]


@contextlib.contextmanager
def compile_cache() -> Iterator[None]:
    """Use the cache in this block; a failure is a warning. A folder that the user has set for JAX is respected."""
    import jax

    if os.environ.get("JAX_COMPILATION_CACHE_DIR") or getattr(jax.config, "jax_compilation_cache_dir", None):
        yield
        return
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(13, "permission denied")
    except (OSError, RuntimeError) as error:  # RuntimeError: no home folder
        complain(f"compiled code is not kept: {error}")
        yield
        return
    wanted: dict[str, Any] = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": SMALLEST_SECONDS,
    }
    before = {name: getattr(jax.config, name) for name in wanted}
    _update(wanted)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("default", message="Error (reading|writing) persistent compilation cache")
            yield
    finally:
        _update(before)


def _update(values: dict[str, Any]) -> None:
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    for name, value in values.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
