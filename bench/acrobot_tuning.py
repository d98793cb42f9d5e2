"""What `acrobot-reliable` was tuned on: rows for a steady ARNPG-EPD, NPG-PD and CRPO, on seeds of their own; ablation.

    python bench/acrobot_tuning.py [NAME ...]      (E, N, C: three settings each of a method; A: E2 without a part)

A row is 300 iterations on six seeds (100 to 105), none of which the experiment uses; final values are means of the last
20 iterations. About 70 CPU seconds a row.
"""

import sys
from typing import Any, NamedTuple

from arnpg import Constrained
from arnpg.envs import Acrobot
from arnpg.experiments.acrobot import Setup, final, parts, region, train

SEEDS, ITERATIONS, LIMIT, SHARE = range(100, 106), 300, 50.0, 0.2
STEADY = {"micro_steps": 2, "regularisation": 1.0, "damping": 0.02, "clip": 0.2}


class Row(NamedTuple):
    """A method, the limits it is given, its settings."""

    method: str
    limit: float
    settings: dict[str, Any]


GRID = {
    "E1": Row("arnpg-epd-steady", LIMIT, {**STEADY, "dual_step": 5e-4, "margin": 0.1}),
    "E2": Row("arnpg-epd-steady", LIMIT, {**STEADY, "dual_step": 2e-3, "margin": 0.1}),
    "E3": Row("arnpg-epd-steady", LIMIT, {**STEADY, "dual_step": 2e-3, "margin": 0.06}),
    "A1": Row("arnpg-epd-steady", LIMIT, {**STEADY, "dual_step": 2e-3, "margin": 0.0}),
    "A2": Row("arnpg-epd-steady", LIMIT, {**STEADY, "dual_step": 2e-3, "margin": 0.1, "damping": 2e-3}),
    "A3": Row("arnpg-epd-steady", LIMIT, {**STEADY, "dual_step": 2e-3, "margin": 0.1, "clip": 1e6}),
    "N1": Row("npg-pd", 0.9 * LIMIT, {"dual_step": 2e-3}),
    "N2": Row("npg-pd", 0.9 * LIMIT, {"dual_step": 5e-4}),
    "N3": Row("npg-pd", 0.9 * LIMIT, {"dual_step": 1e-3}),
    "C1": Row("crpo", LIMIT, {}),
    "C2": Row("crpo", LIMIT, {"max_kl": (0.003, 0.003, 0.003)}),
    "C3": Row("crpo", 0.9 * LIMIT, {"max_kl": (0.003, 0.003, 0.003)}),
}


def main(names: list[str]) -> None:
    for name in names or list(GRID):
        row = GRID[name]
        damping = 0.006 if row.method == "crpo" else 1e-3
        settings = {**parts((128, 128), 10, 500), "update": region(0.003, damping, SHARE), **row.settings}
        criterion = Constrained("height", at_most=dict.fromkeys(("swing1", "swing2"), row.limit))
        values = train(Setup(row.method, Acrobot(), criterion, ITERATIONS, settings), SEEDS)["values"]
        end = final(values, settings.get("micro_steps", 1))
        kept = (end[:, 1:] <= LIMIT).all(axis=1).sum()
        mean, worst = end.mean(axis=0), end[:, 1:].max(axis=0)
        print(
            f"{name} {row.method} {row.limit:g} {row.settings}: reward {mean[0]:.1f}, deviation "
            f"{end[:, 0].std(ddof=1):.0f}; costs {mean[1]:.1f} {mean[2]:.1f}, largest {worst[0]:.1f} {worst[1]:.1f}; "
            f"both kept by {kept} of {len(end)}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
