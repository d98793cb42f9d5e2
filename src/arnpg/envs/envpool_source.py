"""Where an EnvPool environment comes from, and whether it is the one that Gymnasium has under the same name."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .bare_bodies import bare_bodies
from .environment_source import quiet

__all__ = ["PoolSource", "find_pool"]

# Families whose steps agree with Gymnasium's from the same states; tests/envs/test_envpool_host.py holds them to it.
SAME = re.compile(
    r"(Hopper|Walker2d|HalfCheetah|Ant|Swimmer|InvertedPendulum)-v[45]"
    r"|(CartPole|Acrobot|MountainCar|MountainCarContinuous|Pendulum)-v\d"
)
BODIES = re.compile(r"(Hopper|Walker2d|HalfCheetah|Ant|Swimmer|InvertedPendulum)-v[345]")
GONE = re.compile(r".*-v[23]")  # MuJoCo environments that Gymnasium names and cannot make any more
MACHINERY = {
    "num_envs", "batch_size", "num_threads", "max_num_players", "thread_affinity_offset", "base_path", "seed",
    "env_seed", "gym_reset_return_info", "max_episode_steps",
}  # fmt: skip
NO_LIMIT = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class PoolSource:
    """Makes pools of one environment.

    Attributes:
        name: EnvPool's id.
        options: settings of the environment, as sorted pairs.
        time_limit: what EnvPool has for it, if anything.
        alone: whether Gymnasium cannot make it here, so that there is no choice.
        same: whether Gymnasium's steps are known to be the same.
    """

    name: str
    options: tuple[tuple[str, Any], ...] = ()
    time_limit: int | None = None
    alone: bool = False
    same: bool = False

    def __call__(self, seeds: Sequence[int], threads: int, limit: int) -> Any:
        """A pool of ``len(seeds)`` environments.

        The adapter counts the steps by itself, since EnvPool calls an episode truncated that ends of its own in its
        last step; the pool's ``limit`` is only to be out of the way.
        """
        import envpool
        from envpool.registration import base_path

        bodies = {"base_path": bare_bodies(base_path)} if BODIES.fullmatch(self.name) else {}
        return envpool.make(
            self.name,
            env_type="gymnasium",
            num_envs=len(seeds),
            env_seed=list(seeds),
            num_threads=threads,
            max_episode_steps=limit,
            **bodies,
            **dict(self.options),
        )


def find_pool(env: Any, options: Mapping[str, Any] | None) -> PoolSource | str:
    """The pool of an id, or a sentence on why there is none."""
    if not isinstance(env, str):
        return f"backend='envpool' needs an id such as 'Hopper-v5', got {env!r}; leave backend='auto'."
    try:
        envpool: Any = importlib.import_module("envpool")
    except ImportError:
        return "backend='envpool' needs EnvPool, which is not here; pip install 'arnpg[envpool]', or backend='auto'."
    if env not in envpool.list_all_envs():
        return f"EnvPool has no {env!r}; leave backend='auto', or choose from envpool.list_all_envs()."
    config = envpool.make_spec(env).config._asdict()
    given, known = dict(options or {}), set(config) - MACHINERY
    unknown = sorted(set(given) - known)
    if unknown:
        return f"EnvPool's {env} does not take the option {unknown[0]!r}; it takes {', '.join(sorted(known))}."
    if config["max_num_players"] > 1:
        return f"EnvPool's {env} has several players; only environments of one are supported."
    spaces = _spaces(env)
    if spaces is not None:
        return spaces
    limit = config["max_episode_steps"]
    limit = None if limit >= NO_LIMIT else limit
    return PoolSource(env, tuple(sorted(given.items())), limit, not _gymnasium_has(env), bool(SAME.fullmatch(env)))


def _spaces(env: str) -> str | None:
    """What is in the way in its observations, if anything."""
    import envpool
    from gymnasium import spaces

    def numbers(space: Any) -> bool:
        if isinstance(space, spaces.Dict):
            return all(map(numbers, space.spaces.values()))
        return isinstance(space, spaces.Box | spaces.Discrete)

    with quiet():
        space = envpool.make_spec(env).gymnasium_observation_space
    return None if numbers(space) else f"EnvPool's {env} shows {space}; supported are Box, Discrete and Dict of these."


def _gymnasium_has(name: str) -> bool:
    import gymnasium

    if name not in gymnasium.registry:
        return False
    if "mujoco" not in str(gymnasium.registry[name].entry_point):
        return True
    return GONE.fullmatch(name) is None and importlib.util.find_spec("mujoco") is not None
