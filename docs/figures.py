"""Draw the figures of docs/experiments.md from finished runs: ``python docs/figures.py runs``."""

import sys
from pathlib import Path

from arnpg.report.draw import draw
from arnpg.report.stored import read_report

CHOSEN = {
    "tabular-cmdp": ("tabular-cmdp-paper",),
    "tabular-cmdp-sampled": ("tabular-cmdp-sampled-10-paper",),
    "tabular-sumlog": ("tabular-sumlog-paper",),
    "tabular-sumlog-sampled": ("tabular-sumlog-sampled-10-paper",),
    "tabular-maxmin": ("tabular-maxmin-paper", "tabular-maxmin-tuned"),
    "tabular-maxmin-sampled": ("tabular-maxmin-sampled-10-paper",),
    "acrobot-cmdp": ("acrobot-cmdp-shaded",),
    "acrobot-inner-loops": ("acrobot-inner-loops",),
    "acrobot-sumlog": ("acrobot-sumlog",),
    "acrobot-reliable": ("acrobot-reliable",),
    "hopper": ("hopper-shaded",),
    "mo-gymnasium": ("mo-gymnasium-fairness",),
    "safety-velocity": ("safety-velocity-hopper-v4",),
}
TARGET = Path(__file__).parent / "figures"


def main(runs: Path) -> None:
    """Write one PNG a figure."""
    TARGET.mkdir(exist_ok=True)
    for name, wanted in CHOSEN.items():
        if not (runs / name / "report.json").exists():
            continue
        for figure in read_report(runs / name / "report.json").figures:
            if figure.name in wanted:
                draw(figure, TARGET / f"{figure.name}.png", dpi=80)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
