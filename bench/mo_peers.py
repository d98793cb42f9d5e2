"""Fairness and max-min on MO-Gymnasium's environments, beside MORL-Baselines with as many environment steps.

    arnpg reproduce mo-gymnasium --out runs
    python bench/mo_peers.py runs/mo-gymnasium --peer-python PYTHON [--seeds 5] [--only fishwood-v0]

Ours are the last policies of that run; its settings say how many steps each had. The peer's runs are made here, one
after the other (``mo_peers_side.py``): on discrete actions NL-MO-PPO, whose utility is of the mean value vector as our
criteria are; on mo-hopper MO-PPO with equal weights, since neither NL-MO-PPO nor EUPG takes real-valued actions, so
that one run counts for both criteria. All is judged alike, by the criterion of a policy's mean totals, actions drawn;
``nan`` is the logarithm of a total that is too low to have one.

``--peer-python`` names an interpreter in an environment of its own:

    python3 -m venv peers && peers/bin/pip install torch morl-baselines "mo-gymnasium[mujoco]"
"""

import argparse
import json
import os
import pathlib
import subprocess
from typing import Any

import numpy as np

from arnpg.api import solve
from arnpg.experiments.mo_gymnasium import KINDS, MOGymnasium
from arnpg.experiments.mo_problems import Problem, objective
from arnpg.intervals import interval


def settings_of(folder: pathlib.Path) -> MOGymnasium:
    """The experiment as it was run."""
    given = json.loads((folder / "config.json").read_text(encoding="utf-8"))["config"]["settings"]
    return MOGymnasium(**{name: tuple(x) if isinstance(x, list) else x for name, x in given.items()})


def ours(folder: pathlib.Path, name: str, kind: str) -> np.ndarray:
    with np.load(folder / "stages" / f"{name} {kind}.npz") as stage:
        return stage["leaf/final"]


def theirs(python: str, name: str, kind: str, problem: Problem, seed: int) -> dict[str, Any]:
    about = {"env": name, "kind": kind, "steps": problem.steps, "seed": seed, "limit": problem.env.time_limit}
    script = pathlib.Path(__file__).resolve().with_name("mo_peers_side.py")
    places = {**os.environ, "OMP_NUM_THREADS": "1"}
    words = [python, str(script), json.dumps(about)]
    ran = subprocess.run(words, capture_output=True, encoding="utf-8", env=places)
    if ran.returncode:
        raise RuntimeError(ran.stderr[-2000:])
    return json.loads(ran.stdout.splitlines()[-1])


def line(name: str, kind: str, problem: Problem, mine: np.ndarray, runs: list[dict[str, Any]]) -> str:
    known = problem.known
    best = "" if known is None else f"{solve(known.mdp, problem.criteria[kind]).objective:.4g}"
    cells, peers = [name, kind], np.array([run["final"] for run in runs])
    cells += [str(interval(objective(problem, kind, finals))) for finals in (mine, peers)]
    cells += [best, *(", ".join(f"{x:.4g}" for x in finals.mean(axis=0)) for finals in (mine, peers))]
    cells.append(f"{np.mean([run['cpu'] for run in runs]):.0f}")
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only")
    given = parser.parse_args()
    print("| environment | criterion | arnpg | MORL-Baselines | optimum | its totals | their totals | their CPU s |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name, problem in settings_of(given.folder).problems().items():
        if given.only not in (None, name):
            continue
        runs: list[dict[str, Any]] = []
        for kind in KINDS:
            if problem.known is not None or not runs:  # equal weights know of no criterion
                runs = [theirs(given.peer_python, name, kind, problem, seed) for seed in range(given.seeds)]
            print(line(name, kind, problem, ours(given.folder, name, kind), runs), flush=True)


if __name__ == "__main__":
    main()
