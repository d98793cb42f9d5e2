"""The parts of a page that are the same on every page: style and script."""

from __future__ import annotations

from importlib import resources

from arnpg.errors import SettingsError

__all__ = ["GUIDE", "SCRIPT", "STYLE", "plotly_source"]

STYLE = """\
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; color: #222; background: #fff;
  max-width: 1180px; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; }
h2 { font-size: 1.4rem; margin: 3rem 0 .3rem; padding-top: 1rem; border-top: 2px solid #ddd; }
h3 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .4rem 0 .8rem; max-width: 62rem; }
a { color: #0a58a6; }
code { background: #f4f4f4; padding: .1em .3em; border-radius: 3px; overflow-wrap: anywhere; }
.quiet { color: #555; font-size: .92rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .3rem 0 1rem; font-size: .93rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid #e6e6e6; }
th { color: #444; font-weight: 600; border-bottom: 2px solid #ccc; }
td { overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
td:first-child, .verdict { overflow-wrap: normal; }
.settings td:nth-child(2) { width: 55%; } .settings td:first-child { white-space: nowrap; }
.verdict { white-space: nowrap; font-weight: 600; }
.holds { color: #00674a; } .fails { color: #a33c00; } .open { color: #555; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(460px, 100%), 1fr)); gap: .5rem; }
.plot { min-width: 0; min-height: 430px; }
nav ul { margin: .3rem 0 1rem; padding-left: 1.2rem; }
@media print { body { max-width: none; padding: 0; } h2 { break-before: page; } figure, tr { break-inside: avoid; } }
figure { margin: 0 0 1rem; } figcaption { color: #444; margin: .2rem 0; }
"""

SCRIPT = """\
(() => {
  const stored = JSON.parse(document.getElementById("plots").textContent);
  const options = {
    responsive: true, displaylogo: false, displayModeBar: "hover", showSendToCloud: false,
    toImageButtonOptions: { format: "svg" },
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
  };
  for (const [id, plot] of Object.entries(stored)) Plotly.newPlot(id, plot.data, plot.layout, options);
})();
"""

GUIDE = (
    "A claim holds where the figure measured on the first instance (the paper's) satisfies its sentence; figures after "
    "“others” come from further random instances. Square brackets are 95 % bootstrap intervals, and n is how many "
    "instances or seeds they rest on. “The paper's step sizes” are the paper's numbers in the paper's formulas; “best "
    "of the grid” is the best of a search around them. A claim that does not hold is a finding. Figures: hover to read "
    "values, drag to zoom, double-click to zoom out, click a legend to hide a line."
)


def plotly_source() -> str:
    """The whole of plotly.js, from the ``plotly`` package."""
    try:
        return (resources.files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    except (ImportError, OSError) as error:
        raise SettingsError('the page needs plotly; install it with pip install "arnpg[report]".') from error
