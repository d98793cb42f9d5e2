"""What an environment's numbers depend on beside its id: the versions of the packages that step it."""

from __future__ import annotations

import importlib.metadata

from .envpool_host import EnvPoolEnvironment
from .gymnasium_host import GymnasiumEnvironment
from .host import AbstractHostEnvironment

__all__ = ["backend_versions"]

BESIDE = {"mujoco": "mujoco", "mo_gymnasium": "mo-gymnasium", "mo-": "mo-gymnasium"}


def backend_versions(host: AbstractHostEnvironment) -> dict[str, str]:
    """Package names and versions; equal where a run may go on as if nothing had happened."""
    packages = set()
    if isinstance(host, EnvPoolEnvironment):
        packages = {"envpool"}
    elif isinstance(host, GymnasiumEnvironment):
        module = _module(host.source.what)
        packages = {"gymnasium", *(package for word, package in BESIDE.items() if word in module)}
        packages |= set(importlib.metadata.packages_distributions().get(module.partition(".")[0], ()))
    found = {}
    for package in sorted(packages):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "unknown"
    return found


def _module(what: object) -> str:
    """The module of an environment's class, as far as it is known."""
    if isinstance(what, str):
        import gymnasium

        spec = gymnasium.registry.get(what.rpartition(":")[2])
        return str(getattr(spec, "entry_point", what))
    entry = getattr(what, "entry_point", None)
    return str(entry) if entry is not None else str(getattr(what, "__module__", ""))
