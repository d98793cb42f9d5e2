"""The folder of a run: who it belongs to, what made it, whether it is finished, and that only one process writes."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from arnpg.errors import StorageError
from arnpg.runs.files import remove_temporaries, storage, write_all, write_atomic
from arnpg.runs.lock import FolderLock

__all__ = ["RunFolder", "config_hash"]

SCHEMA = 1
MAX_BYTES = 16 * 2**20
PACKAGES = ("arnpg", "jax", "jaxlib", "equinox", "numpy", "scipy")


class RunFolder:
    """A run on the disk. ``create`` and ``enter`` lock it until ``close``, or the end of a ``with`` block."""

    def __init__(self, path: str | os.PathLike, about: dict[str, Any]) -> None:
        """For ``create``, ``enter`` and ``open``."""
        self.path, self.about = Path(path), about
        self._lock = FolderLock(self.path / ".lock")

    @classmethod
    def create(
        cls,
        path: str | os.PathLike,
        kind: str,
        config: Mapping[str, Any],
        *,
        seed: int | None = None,
        command: Sequence[str] | None = None,
        parents: bool = False,
    ) -> RunFolder:
        """A new run of this ``kind`` with this ``config`` (plain JSON data); refuses a folder that holds one.

        Args:
            path: the folder, made if needed; its parent must exist, so that a missing mount is noticed.
            kind: what continues it; see ``arnpg.cli.resume``.
            config: what decides the result.
            seed: shown in ``config.json``.
            command: shown in ``config.json``; the command line by default.
            parents: make missing parents too.
        """
        return cls._enter(path, _about(kind, config, seed, command), parents, again=False)

    @classmethod
    def enter(
        cls,
        path: str | os.PathLike,
        kind: str,
        config: Mapping[str, Any],
        *,
        seed: int | None = None,
        command: Sequence[str] | None = None,
        parents: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> RunFolder:
        """The same, but a folder with this very configuration is entered again; a finished one is not locked.

        ``environment`` holds the versions of packages that step the run's environment, if any; they are recorded.
        """
        about = _about(kind, config, seed, command)
        return cls._enter(path, about | {"environment": dict(environment or {})}, parents, again=True)

    @classmethod
    def open(cls, path: str | os.PathLike) -> RunFolder:
        """An existing run, to read; ``lock`` it to continue."""
        about = _read_about(Path(path))
        if about is None:
            raise StorageError(f"{path} is not the folder of a run: it has no config.json.")
        return cls(path, about)

    @classmethod
    def _enter(cls, path: str | os.PathLike, about: dict[str, Any], parents: bool, again: bool) -> RunFolder:
        folder = cls(path, about)
        if (found := _read_about(folder.path)) is None:
            _prepare(folder.path, parents)
        elif folder._judge(found, again):
            return folder
        folder.lock()
        try:
            if (found := _read_about(folder.path)) is None:
                for name in ("checkpoints", "plots"):
                    with storage(folder.path / name):
                        (folder.path / name).mkdir(exist_ok=True)
                write_atomic(folder.path / "config.json", _json(about))
            elif folder._judge(found, again):
                folder.close()
        except BaseException:
            folder.close()
            raise
        return folder

    def _judge(self, found: dict[str, Any], again: bool) -> bool:
        """Whether the run that was found is this one and finished; refuses every other case but resuming."""
        if found["config_hash"] != self.about["config_hash"]:
            changed = ", ".join(RunFolder(self.path, found).changes())
            versions = f" (and with other versions: {changed})" if changed else ""
            raise StorageError(f"{self.path} holds a run of another configuration{versions}; choose another folder.")
        self.about = found
        if self.finished and not again:
            raise StorageError(f"{self.path} holds a finished run, which is never overwritten; choose another folder.")
        if not again:
            raise StorageError(f"{self.path} holds this run, unfinished; `arnpg resume {self.path}` continues it.")
        return self.finished

    @property
    def kind(self) -> str:
        """What continues this run."""
        return self.about["kind"]

    @property
    def config(self) -> dict[str, Any]:
        """What decides its result."""
        return self.about["config"]

    @property
    def config_hash(self) -> str:
        """The SHA-256 of kind and configuration."""
        return self.about["config_hash"]

    @property
    def finished(self) -> bool:
        """Whether there is a summary."""
        with storage(self.path, "read"):
            return (self.path / "summary.json").is_file()

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def plots(self) -> Path:
        """The folder of figures."""
        return self.path / "plots"

    @property
    def metrics(self) -> Path:
        """The file of metrics."""
        return self.path / "metrics.jsonl"

    @property
    def trace(self) -> Path:
        """The file of the trace."""
        return self.path / "trace.bin"

    def summary(self) -> dict[str, Any]:
        """What ``finish`` wrote."""
        return _read_json(self.path / "summary.json")

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write ``summary.json``; from here on the folder is finished."""
        write_atomic(self.path / "summary.json", _json(summary))

    def changes(self) -> list[str]:
        """Packages whose version is not the one the run began with; bits may differ from there on."""
        before = {**self.about["versions"], "python": self.about["python"]}
        return _changed(before, {**_versions(), "python": platform.python_version()})

    def environment_changes(self, now: Mapping[str, str]) -> list[str]:
        """Of the packages that step the environment, those whose version is not the one the run began with."""
        return _changed(self.about.get("environment", {}), now)

    def lock(self) -> None:
        """Keep others out, or say who is in; removes what a killed writer left."""
        self._lock.acquire()
        for folder in (self.path, self.checkpoints):
            remove_temporaries(folder)

    def close(self) -> None:
        """Let others in."""
        self._lock.release()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def config_hash(kind: str, config: Mapping[str, Any]) -> str:
    """The SHA-256 of kind and configuration, whatever the order of the keys."""
    return hashlib.sha256(json.dumps({"kind": kind, "config": config}, sort_keys=True).encode()).hexdigest()


def _about(kind: str, config: Mapping[str, Any], seed: int | None, command: Sequence[str] | None) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kind": kind,
        "config": json.loads(json.dumps(config)),
        "config_hash": config_hash(kind, config),
        "seed": seed,
        "command": list(sys.argv if command is None else command),
        "versions": _versions(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [f"{name} {old} -> {now.get(name, 'gone')}" for name, old in before.items() if now.get(name) != old]


def _versions() -> dict[str, str]:
    from arnpg import __version__

    found = {"arnpg": __version__}
    for name in PACKAGES[1:]:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _prepare(path: Path, parents: bool) -> None:
    """Make the folder and write to it, so that what would fail at the first checkpoint fails before any work."""
    with storage(path):
        path.mkdir(parents=parents, exist_ok=True)
        strangers = [entry.name for entry in path.iterdir() if not entry.name.startswith(".")]
        if set(strangers) - {"checkpoints", "plots"}:
            raise StorageError(f"{path} holds other files, such as {min(strangers)}; choose an empty or a new folder.")
        probe = path / f".probe.{os.getpid()}.tmp"
        try:
            handle = os.open(probe, os.O_WRONLY | os.O_CREAT, 0o666)
            try:
                write_all(handle, b"arnpg")
                os.fsync(handle)
            finally:
                os.close(handle)
        finally:
            with contextlib.suppress(OSError):
                probe.unlink(missing_ok=True)


def _read_about(path: Path) -> dict[str, Any] | None:
    """``config.json``, checked; none where there is none."""
    with storage(path, "read"):
        if not (path / "config.json").exists():
            if path.is_symlink():
                path.stat()  # raises for a loop or a link to nowhere
            return None
    about = _read_json(path / "config.json")
    if about.get("schema", 0) > SCHEMA:
        raise StorageError(f"{path / 'config.json'} has schema {about['schema']}; update arnpg, which reads {SCHEMA}.")
    missing = [name for name in ("kind", "config", "config_hash", "versions", "python") if name not in about]
    if missing:
        raise StorageError(f"{path / 'config.json'} lacks {missing[0]}; it was not written by arnpg, or was edited.")
    if about["config_hash"] != config_hash(about["kind"], about["config"]):
        raise StorageError(f"{path / 'config.json'} was edited: its hash differs; restore it, or start a new run.")
    return about


def _read_json(path: Path) -> dict[str, Any]:
    with storage(path, "read"):
        if path.stat().st_size > MAX_BYTES:
            raise StorageError(f"{path} is too large, {path.stat().st_size} bytes.")
        text = path.read_bytes()
    try:
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError("it holds no object")
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{path} is not valid JSON: {error}.") from error
    return found


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()
