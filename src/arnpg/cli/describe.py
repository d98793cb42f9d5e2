"""``arnpg describe``: what is in a model file or in a solution file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arnpg.cli.parser import Parser, UsageError
from arnpg.cli.terminal import Section, show

if TYPE_CHECKING:
    from arnpg.tabular.mdp import MDP

__all__ = ["main"]

EXAMPLES = """\
For a model: sizes, discount, starting and reachable states, and for each objective the range of its rewards and of the
values that policies can reach, so that limits can be chosen. For a solution: values, prices, gap, policy.

examples:
  arnpg describe model.npz
  arnpg describe solution.npz
"""

RANGES_UP_TO = 3000  # states: beyond, the reachable values are not computed unasked


def main(argv: list[str]) -> int:
    """Print what is in the file."""
    parser = Parser(
        prog="arnpg describe",
        usage="arnpg describe FILE.npz",
        description="Say what is in a model file or a solution file.",
        epilog=EXAMPLES,
    )
    parser.add_argument("file", nargs="?", metavar="FILE.npz", help="what arnpg or numpy.savez wrote")
    given = parser.read(argv)
    if given is None:
        return 0
    if given.file is None:
        raise UsageError("which file? Give the path of a .npz file.")
    from arnpg.files import load
    from arnpg.tabular.mdp import MDP

    found = load(given.file)
    if isinstance(found, MDP):
        show(_model_sections(given.file, found))
    else:
        from arnpg.cli.solution_view import sections

        show([Section(f"{given.file}: a solution", []), *sections(found)])
    return 0


def _model_sections(path: str, mdp: MDP) -> list[Section]:
    reachable, absorbing = reachable_states(mdp), absorbing_states(mdp)
    starts = int((mdp.initial > 0).sum())
    size = sum(array.nbytes for array in (mdp.transitions, mdp.rewards, mdp.initial))
    rows = [
        ("states", f"{mdp.states} ({reachable} reachable, {absorbing} absorbing, {starts} to start from)"),
        ("actions", str(mdp.actions)),
        ("objectives", str(mdp.objectives)),
        ("discount", f"{mdp.discount:g} (a horizon of {1 / (1 - mdp.discount):.6g} steps)"),
        ("successors", f"{float((mdp.transitions > 0).sum(axis=2).mean()):.1f} per state and action, on average"),
        ("memory", _bytes(size)),
    ]
    rows += [("note", note) for note in mdp.notes]
    return [Section(f"{path}: a model", rows), _objectives(mdp)]


def _objectives(mdp: MDP) -> Section:
    known = mdp.states <= RANGES_UP_TO
    ranges = value_ranges(mdp) if known else []
    rows = []
    for index, name in enumerate(mdp.names):
        reward = mdp.rewards[index]
        cells = [name, f"{reward.min():.6g}", f"{reward.max():.6g}"]
        rows.append(cells + [f"{value:.6g}" for value in ranges[index]] if known else cells)
    header = ["objective", "least reward", "largest reward"] + (["least value", "largest value"] if known else [])
    return Section("objectives", rows, header)


def value_ranges(mdp: MDP) -> list[tuple[float, float]]:
    """The least and the largest value that any policy gives, for each objective."""
    import numpy as np

    from arnpg.tabular.region import extreme_point

    return [
        (float(extreme_point(mdp, -unit)[index]), float(extreme_point(mdp, unit)[index]))
        for index, unit in enumerate(np.eye(mdp.objectives))
    ]


def reachable_states(mdp: MDP) -> int:
    """How many states can ever be visited."""
    import numpy as np

    edges: np.ndarray = np.any(mdp.transitions > 0, axis=1)
    seen = np.asarray(mdp.initial > 0)
    frontier = np.flatnonzero(seen)
    while len(frontier):
        frontier = np.flatnonzero(np.any(edges[frontier], axis=0) & ~seen)
        seen[frontier] = True
    return int(seen.sum())


def absorbing_states(mdp: MDP) -> int:
    """How many states are never left."""
    import numpy as np

    stay = np.einsum("sas->sa", mdp.transitions)
    return int((stay >= 1 - 1e-12).all(axis=1).sum())


def _bytes(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
