"""Where a Gymnasium environment comes from: an id, a class, a function that makes one, an instance with a spec."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import importlib
import importlib.util
import inspect
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from arnpg.errors import SettingsError

__all__ = ["Source", "find_source", "known_ids", "own_time_limit", "quiet"]

# What Gymnasium says of environments that its user did not write: a version is older than the newest, a bound of a
# space is rounded, a number in a Dict is no array.
PRATTLE = (".*is out of date", ".*precision lowered by casting", ".*Casting input x to numpy array")
PARTS = ("reset", "step", "observation_space", "action_space")
OLD_MUJOCO = ("-v2", "-v3")
EXTRAS = {"mujoco": "mujoco", "mo_gymnasium": "mo", "mo-gymnasium": "mo", "envpool": "envpool"}


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """Makes one environment a call; equal where id or function and options are.

    Attributes:
        what: an id (perhaps ``module:id``), a Gymnasium ``EnvSpec``, or a function.
        options: keyword arguments for the constructor.
        label: for tables and files.
        time_limit: what the registry says of it.
    """

    what: Any
    options: Mapping[str, Any]
    label: str
    time_limit: int | None = None

    def __call__(self) -> Any:
        """One environment, without the time limit of its registration: the adapter counts by itself."""
        with quiet():
            own = callable(self.what)
            if own:
                _check_options(self.what, self.options, self.label)
            made = self.what(**self.options) if own else _registered(self.what, self.options, self.label)
        missing = [part for part in PARTS if not hasattr(made, part)]
        if missing:
            raise SettingsError(
                f"{self.label} made a {type(made).__name__}, which has no {', '.join(missing)}; "
                "an environment is a gymnasium.Env."
            )
        if hasattr(made, "num_envs"):
            raise SettingsError(f"{self.label} made a vector environment; give the single one, it is batched here.")
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple:
        what = self.what if isinstance(self.what, str) or callable(self.what) else id(self.what)
        return what, repr(sorted(self.options.items()))


def find_source(env: Any, options: Mapping[str, Any] | None = None) -> Source:
    """The source of what a user gave; refuses what is none, with what was perhaps meant."""
    options = dict(options or {})
    if isinstance(env, str):
        return _from_text(env, options)
    if callable(env) and not hasattr(env, "observation_space"):
        return Source(env, options, getattr(env, "__name__", type(env).__name__).replace("<lambda>", "environment"))
    if isinstance(env, type):
        return Source(env, options, env.__name__)
    spec = getattr(env, "spec", None)
    if spec is None:
        raise SettingsError(
            f"env is one {type(env).__name__}, and several are needed; give its class, its id, "
            "or a function that makes one."
        )
    if options:
        raise SettingsError("options are for ids, classes and functions; an instance already has its own.")
    return Source(spec, {}, spec.id, spec.max_episode_steps)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without Gymnasium's warnings on what its user cannot change."""
    with warnings.catch_warnings():
        for message in PRATTLE:
            warnings.filterwarnings("ignore", message)
        yield


def own_time_limit(env: Any) -> int | None:
    """The time limit that a made environment carries: of its spec, or of a ``TimeLimit`` around it."""
    limit = getattr(getattr(env, "spec", None), "max_episode_steps", None)
    while limit is None and env is not None:
        limit = getattr(env, "_max_episode_steps", None)
        env = getattr(env, "env", None)
    return None if limit is None or limit < 0 else int(limit)


def known_ids() -> list[str]:
    """What Gymnasium, MO-Gymnasium and EnvPool know by name on this machine."""
    import gymnasium

    _import_if_installed("mo_gymnasium")
    pool = _import_if_installed("envpool")
    return sorted({*gymnasium.registry, *(pool.list_all_envs() if pool else ())})


def _from_text(text: str, options: dict[str, Any]) -> Source:
    module, colon, name = text.partition(":")
    if colon:
        try:
            holder = importlib.import_module(module)
        except ImportError as error:
            raise SettingsError(f"{text} cannot be imported: {error}; is its folder on PYTHONPATH?") from error
        found = getattr(holder, name, None)
        if found is None and not _is_registered(name):
            near = difflib.get_close_matches(name, vars(holder), n=2, cutoff=0.6)
            hint = f"; perhaps you meant {' or '.join(near)}?" if near else "."
            raise SettingsError(f"module {module} has no {name!r}, and Gymnasium no such id{hint}")
        if found is not None:
            if not callable(found):
                raise SettingsError(f"{text} is a {type(found).__name__}, not a class or function of an environment.")
            return dataclasses.replace(find_source(found, options), label=name)
    return _from_id(text, name if colon else text, options)


def _is_registered(name: str) -> bool:
    import gymnasium

    return name in gymnasium.registry


def _from_id(text: str, name: str, options: dict[str, Any]) -> Source:
    import gymnasium

    if name not in gymnasium.registry:
        _import_if_installed("mo_gymnasium")
    if name not in gymnasium.registry:
        raise SettingsError(unknown(name))
    spec = gymnasium.registry[name]
    if str(spec.entry_point).startswith("mo_gymnasium."):
        text = f"mo_gymnasium:{name}"  # a process of its own must import it, too
    return Source(text, options, name, spec.max_episode_steps)


def unknown(name: str) -> str:
    """A sentence on an id that nobody knows here."""
    for package, extra in (("mo_gymnasium", "mo"), ("envpool", "envpool")):
        spelled_so = name.startswith("mo-") if extra == "mo" else name.endswith(OLD_MUJOCO)
        if spelled_so and importlib.util.find_spec(package) is None:
            return f"{name!r} is not known here; it may be one of {package}'s: pip install 'arnpg[{extra}]'."
    near = difflib.get_close_matches(name, [known for known in known_ids() if known != name], n=3, cutoff=0.6)
    hint = f"; perhaps you meant {' or '.join(near)}?" if near else "."
    return f"{name!r} is not the id of an environment{hint} Your own is 'package.module:Class'."


def _check_options(what: Any, options: Mapping[str, Any], label: str) -> None:
    """Refuse options that a class or function does not take; what has no signature is left to say so itself."""
    try:
        signature = inspect.signature(what)
    except ValueError:
        return
    try:
        signature.bind(**options)
    except TypeError as error:
        raise SettingsError(f"{label} cannot be made with the options {dict(options)}: {error}.") from error


def _registered(what: Any, options: Mapping[str, Any], label: str) -> Any:
    import gymnasium

    try:
        # The checker refuses reward vectors, and what it warns of is checked here at each step.
        return gymnasium.make(what, max_episode_steps=-1, disable_env_checker=True, **options)
    except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
        if label.endswith(OLD_MUJOCO) and "mujoco" in str(error).lower():
            raise SettingsError(
                f"{label} is not in Gymnasium any more; take {label[:-1]}5, or pip install 'arnpg[envpool]'."
            ) from error
        extra = next((e for word, e in EXTRAS.items() if word in str(error).lower()), None)
        told = "" if "pip install" in str(error) else " (install it)"
        cure = f" (pip install 'arnpg[{extra}]')" if extra else told
        raise SettingsError(f"{label} needs a package that is not here: {error}{cure}") from error
    except TypeError as error:
        raise SettingsError(f"{label} does not take the options {dict(options)}: {error}") from error


def _import_if_installed(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        return None


