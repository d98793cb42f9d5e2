"""EnvPool's MuJoCo bodies without their textures, which only a camera would see.

A pool is seeded where it is made, so that training makes one for each batch; painting the textures of eight Hoppers is
three quarters of that, a tenth of all that a batch of 2,000 steps costs. The physics is the same to the last bit.
"""

from __future__ import annotations

import functools
import re
import tempfile
from pathlib import Path

__all__ = ["bare_bodies"]

BODIES = Path("mujoco", "assets_gym")  # where EnvPool looks below its folder of assets
PAINT = re.compile(r"<(?:texture|material)\b[^>]*/>|\smaterial=\"[^\"]*\"")


def bare_bodies(assets: str) -> str:
    """A folder to be given to EnvPool in the place of ``assets``; it goes with the process."""
    return assets if not (Path(assets) / BODIES).is_dir() else _copied(assets).name


@functools.cache
def _copied(assets: str) -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory(prefix="arnpg-bodies-")
    target = Path(folder.name) / BODIES
    target.mkdir(parents=True)
    for body in (Path(assets) / BODIES).glob("*.xml"):
        (target / body.name).write_text(PAINT.sub("", body.read_text(encoding="utf-8")), encoding="utf-8")
    return folder
