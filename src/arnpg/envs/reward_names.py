"""Names for the entries of reward vectors: the environment's own, MO-Gymnasium's as its pages describe them, numbers.

MO-Gymnasium's entries are rewards, larger is better, costs being negative numbers there; the names say of what.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["declared_width", "reward_names"]

OWN = ("reward_names", "objective_names", "objectives")
VERSION = re.compile(r"(?:.*:)?(.*?)(?:-v\d+)?")
FORWARD = ("forward", "control")
MO_GYMNASIUM = {
    "deep-sea-treasure": ("treasure", "time"),
    "deep-sea-treasure-concave": ("treasure", "time"),
    "deep-sea-treasure-mirrored": ("treasure", "time"),
    "resource-gathering": ("survival", "gold", "diamond"),
    "four-room": ("blue", "green", "red"),
    "fishwood": ("fish", "wood"),  # its own page says it the other way round
    "breakable-bottles": ("time", "delivered", "potential"),
    "fruit-tree": ("protein", "carbs", "fats", "vitamins", "minerals", "water"),
    "minecart": ("ore_1", "ore_2", "fuel"),
    "minecart-rgb": ("ore_1", "ore_2", "fuel"),
    "minecart-deterministic": ("ore_1", "ore_2", "fuel"),
    "mo-mountaincar": ("time", "reverse", "forward"),
    "mo-mountaincar-3d": ("time", "move", "speed"),
    "mo-mountaincar-timemove": ("time", "move"),
    "mo-mountaincar-timespeed": ("time", "speed"),
    "mo-mountaincarcontinuous": ("time", "fuel"),
    "water-reservoir": ("flood_upstream", "water_supply", "power", "flood_downstream"),
    "mo-lunar-lander": ("landing", "shaping", "main_engine", "side_engine"),
    "mo-lunar-lander-continuous": ("landing", "shaping", "main_engine", "side_engine"),
    "mo-hopper": ("forward", "height", "control"),
    "mo-hopper-2d": ("forward", "height"),
    "mo-hopper-2obj": ("forward", "height"),
    "mo-ant": ("x_velocity", "y_velocity", "control"),
    "mo-ant-2d": ("x_velocity", "y_velocity"),
    "mo-ant-2obj": ("x_velocity", "y_velocity"),
    "mo-halfcheetah": FORWARD,
    "mo-walker2d": FORWARD,
    "mo-swimmer": FORWARD,
    "mo-humanoid": FORWARD,
    "mo-reacher": ("target_1", "target_2", "target_3", "target_4"),
    "mo-highway": ("speed", "right_lane", "collision"),
    "mo-highway-fast": ("speed", "right_lane", "collision"),
    "mo-supermario": ("distance", "time", "death", "coins", "enemies"),
}


def declared_width(env: Any) -> int | None:
    """The length of the reward vector that the environment states, or none."""
    inner = getattr(env, "unwrapped", env)
    shape = getattr(getattr(inner, "reward_space", None), "shape", None)
    if shape and len(shape) == 1:
        return int(shape[0])
    width = getattr(inner, "reward_dim", None)
    return int(width) if isinstance(width, int) and width > 1 else None


def reward_names(env: Any, width: int, label: str) -> tuple[str, ...]:
    """One name for each entry."""
    inner = getattr(env, "unwrapped", env)
    for attribute in OWN:
        found = getattr(inner, attribute, None)
        if isinstance(found, (list, tuple)) and len(set(found)) == width and all(isinstance(x, str) for x in found):
            return tuple(found)
    match = VERSION.fullmatch(label)
    known = MO_GYMNASIUM.get(match[1] if match else label, ())
    if len(known) > width and label.startswith("water-reservoir"):
        known = known[:width]  # it takes the first of its four
    return known if len(known) == width else tuple(f"reward_{i + 1}" for i in range(width))
