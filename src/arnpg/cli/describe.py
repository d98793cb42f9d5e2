"""``arnpg describe``: what is in a model file or in a solution file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arnpg.cli.parser import Parser, UsageError
from arnpg.cli.terminal import Section, show, write

if TYPE_CHECKING:
    from scipy.sparse import csr_array

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
        description="Say what is in a file: a model, a solution, a trained run.",
        epilog=EXAMPLES,
    )
    parser.add_argument("file", nargs="?", metavar="FILE.npz", help="what arnpg or numpy.savez wrote")
    given = parser.read(argv)
    if given is None:
        return 0
    if given.file is None:
        raise UsageError("which file? Give the path of a .npz file.")
    from arnpg.files import load
    from arnpg.solution import Solution
    from arnpg.tabular.mdp import MDP

    found = load(given.file)
    if isinstance(found, MDP):
        show(_model_sections(given.file, found))
    elif not isinstance(found, Solution):
        write(f"{given.file}: a trained run\n\n{found.summary()}\n")
    else:
        from arnpg.cli.solution_view import sections

        show([Section(f"{given.file}: a solution", []), *sections(found)])
    return 0


def _model_sections(path: str, mdp: MDP) -> list[Section]:
    from arnpg.tabular.memory import readable

    reachable, absorbing = reachable_states(mdp), absorbing_states(mdp)
    starts = int((mdp.initial > 0).sum())
    pairs = mdp.states * mdp.actions if mdp.allowed is None else int(mdp.allowed.sum())
    rows = [
        ("states", f"{mdp.states} ({reachable} reachable, {absorbing} absorbing, {starts} to start from)"),
        ("actions", str(mdp.actions) + ("" if mdp.allowed is None else f" ({pairs / mdp.states:.3g} on average)")),
        ("objectives", str(mdp.objectives)),
        ("discount", f"{mdp.discount:g} (a horizon of {1 / (1 - mdp.discount):.6g} steps)"),
        ("successors", f"{_rows(mdp).nnz / pairs:.1f} per state and action, on average"),
        ("memory", readable(mdp.nbytes) + (", sparse" if mdp.is_sparse else "")),
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


def _rows(mdp: MDP) -> csr_array:
    """Transitions as ``(S*A, S)`` without explicit zeros."""
    import numpy as np
    from scipy import sparse

    kernel = mdp.transitions
    return sparse.csr_array(kernel.reshape(-1, mdp.states)) if isinstance(kernel, np.ndarray) else kernel


def reachable_states(mdp: MDP) -> int:
    """How many states can ever be visited."""
    import numpy as np

    rows = _rows(mdp)
    starts = rows.indptr[:: mdp.actions]  # the successors of a state, whatever the action, lie beside each other
    seen = mdp.initial > 0
    frontier = np.flatnonzero(seen)
    while len(frontier):
        lengths = starts[frontier + 1] - starts[frontier]
        inner = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        following = np.unique(rows.indices[np.repeat(starts[frontier], lengths) + inner])
        frontier = following[~seen[following]]
        seen[frontier] = True
    return int(seen.sum())


def absorbing_states(mdp: MDP) -> int:
    """How many states are never left."""
    import numpy as np

    rows = _rows(mdp)
    owner = np.repeat(np.arange(mdp.states * mdp.actions), np.diff(rows.indptr))
    stays = rows.indices == owner // mdp.actions
    stay = np.bincount(owner[stays], rows.data[stays], minlength=mdp.states * mdp.actions)
    certain = stay.reshape(mdp.states, mdp.actions) >= 1 - 1e-12
    return int((certain if mdp.allowed is None else certain | ~mdp.allowed).all(axis=1).sum())
