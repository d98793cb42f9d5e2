"""``arnpg evaluate RUN``: fresh episodes of trained policies, with drawn and with the most probable actions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from arnpg.cli.environment import make_environment, named
from arnpg.cli.host_flags import add_host_flags, host_options
from arnpg.cli.parser import Parser, UsageError, whole
from arnpg.cli.terminal import Section, show

if TYPE_CHECKING:
    from arnpg.evaluation import Evaluation
    from arnpg.trained import TrainedRun

__all__ = ["main"]

EXAMPLES = """\
An episode is what the training's values speak of: on Acrobot a path of 500 steps, resets included.

examples:
  arnpg evaluate runs/acrobot
  arnpg evaluate runs/acrobot --episodes 1000 --which best
  arnpg evaluate trained.npz --env mine.envs:Walk
"""


def main(argv: list[str]) -> int:
    """Play and print."""
    parser = Parser(
        prog="arnpg evaluate",
        usage="arnpg evaluate RUN [--episodes N] [--which last|best] [--seed S] [--env ENV]",
        description="Play fresh episodes with the policies of a trained run.",
        epilog=EXAMPLES,
    )
    parser.add_argument("run", nargs="?", metavar="RUN", help="the folder of a trained run, or its trained.npz")
    parser.add_argument("--episodes", metavar="N", default="100", help="for each policy (default 100)")
    parser.add_argument("--which", metavar="W", default="last", help="last, or best: the best policy seen")
    parser.add_argument("--seed", metavar="S", default="0", help="of the episodes (default 0)")
    parser.add_argument("--env", metavar="ENV", help="the environment (default: what it was trained on)")
    add_host_flags(parser)
    given = parser.read(argv)
    if given is None:
        return 0
    if given.run is None:
        raise UsageError("which run? Give the path of its folder, or of its trained.npz.")
    episodes, seed = whole("--episodes", given.episodes, 1), whole("--seed", given.seed)
    run, name, host = _load(Path(given.run), given.env)
    env = make_environment(name, **{**host, **host_options(given)})
    from arnpg.trained import evaluate_run

    for deterministic in (False, True):
        found = evaluate_run(
            env,
            run,
            episodes=episodes,
            seed=seed,
            deterministic=deterministic,
            which=given.which,
        )
        show([_section(found)])
    return 0


def _load(path: Path, env: str | None) -> tuple[TrainedRun, str, dict[str, Any]]:
    """The run, the name of its environment unless ``env`` says another, and what that was made with."""
    from arnpg.runs.folder import RunFolder
    from arnpg.trained import TrainedRun
    from arnpg.training import ARCHIVE

    if not path.is_dir():
        run = TrainedRun.load(path)
        return run, env or _own(run.environment), {}
    folder = RunFolder.open(path)
    if folder.kind != "train":
        raise UsageError(f"{path} is a run of kind {folder.kind!r}; only what `arnpg train` left can be evaluated.")
    if not folder.finished:
        raise UsageError(f"{path} is not finished; `arnpg resume {path}` continues it.")
    run = TrainedRun.load(path / ARCHIVE)
    command = folder.config.get("command") or {}
    return run, env or command.get("env") or _own(run.environment), command.get("host", {})


def _own(name: str) -> str:
    """Code is never imported because a file names it, unless it is ours."""
    if ":" in name and not name.startswith("arnpg."):
        raise UsageError(f"the run was trained on {name}; give it as --env {name} to import it.")
    if not (":" in name or named(name)):
        raise UsageError(f"the run was trained on your own {name}; give it as --env MODULE:{name} to import it.")
    return name


def _section(found: Evaluation) -> Section:
    title, *_ = found.summary().splitlines()
    rows = found.rows()
    if found.labels:
        kept = f"{int(found.kept.sum())} of {len(found.kept)} policies keep all limits in the mean"
        rows.append(("all limits", kept, "", ""))
    return Section(title, rows, ("objective", "mean [95 %]", "5 / 50 / 95 %", "episodes within"))
