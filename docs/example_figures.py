"""Draw the pictures of the worked examples and of the trade-offs page: ``python docs/example_figures.py``."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

import arnpg
from arnpg.examples import downlink, hazard_grid, hospital_ward, inventory, multiclass_queue
from arnpg.report.canvas import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, new_figure, save_figure
from arnpg.tabular.choice import kernel_of

TARGET = Path(__file__).parent / "figures"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED)


def choices(axes: Axes, table: np.ndarray, names: list[str], title: str, across: str, up: str) -> None:
    """The action of each state of a plane; ``table[i, j]`` at ``(i, j)``, negative where the plane has no state."""
    shown = np.ma.masked_less(table, 0).T
    colours = ListedColormap(COLOURS[: len(names)])
    axes.imshow(shown, origin="lower", cmap=colours, vmin=-0.5, vmax=len(names) - 0.5, aspect="auto")
    axes.set(title=title, xlabel=across, ylabel=up)


def key(figure, names: list[str]) -> None:  # noqa: ANN001
    """What the colours mean, below the panels."""
    marks = [Patch(color=colour, label=name) for colour, name in zip(COLOURS, names, strict=False)]
    figure.legend(handles=marks, loc="outside lower center", ncols=min(len(names), 5), frameon=False, fontsize=8)


def likeliest(solution: arnpg.Solution, shape: tuple[int, ...]) -> np.ndarray:
    """The most probable action of each state, on the lattice."""
    return solution.policy.probabilities.argmax(axis=1).reshape(shape)


def queue() -> None:
    """Whom to serve."""
    mdp = multiclass_queue(1000)
    solution = arnpg.solve(mdp, arnpg.Constrained("served 1", at_most={"waiting": 3.0}, at_least={"served 3": 0.115}))
    actions = likeliest(solution, (10, 10, 10))
    names = ["serve 1", "serve 2", "serve 3", "serve 1, closed", "serve 2, closed", "serve 3, closed"]
    figure = new_figure(8.5, 3.8)
    for axes, third in zip(figure.subplots(1, 3), (0, 1, 4), strict=True):
        choices(axes, actions[:, :, third], names, f"{third} of class 3 present", "class 1 present", "class 2 present")
    key(figure, names)
    save_figure(figure, TARGET / "example-queue.png")


def shop() -> None:
    """What to order."""
    mdp = inventory(1024)
    criterion = arnpg.Constrained(arnpg.Linear({"cost": -1.0}), at_most={"lost 1": 0.02, "lost 2": 0.014})
    actions = likeliest(arnpg.solve(mdp, criterion), (32, 32))
    names = ["order nothing", "a lot of product 1", "a lot of product 2"]
    figure = new_figure(5.4, 4.2)
    choices(figure.subplots(), actions, names, "what to order", "stock of product 1", "stock of product 2")
    key(figure, names)
    save_figure(figure, TARGET / "example-inventory.png")


def ward() -> None:
    """Whom to admit."""
    mdp = hospital_ward(1024)
    solutions = [
        arnpg.solve(mdp, arnpg.Linear({"admitted 1": 1.0, "admitted 2": 1.0})),
        arnpg.solve(mdp, arnpg.MaxMin()),
        arnpg.solve(mdp, arnpg.MaxMin({"admitted 1": 0.7, "admitted 2": 0.9})),
    ]
    titles = ("the largest sum", "max-min", "max-min, 7 : 9")
    names = ["admit both", "class 1 only", "class 2 only", "nobody"]
    figure = new_figure(9.0, 3.6)
    beds = 31
    inside = np.add.outer(np.arange(32), np.arange(32)) <= beds
    for axes, solution, title in zip(figure.subplots(1, 3), solutions, titles, strict=True):
        table = np.where(inside, likeliest(solution, (32, 32)), -1)
        choices(axes, table, names, title, "patients of class 1", "patients of class 2")
    key(figure, names)
    save_figure(figure, TARGET / "example-ward.png")


def station() -> None:
    """What to send."""
    mdp = downlink(1000)
    actions = likeliest(arnpg.solve(mdp, arnpg.ProportionalFair()), (10, 10, 10))
    names = ["silent", "user 1, low power", "user 2, low power", "user 1, high power", "user 2, high power"]
    figure = new_figure(8.5, 3.8)
    for axes, charge in zip(figure.subplots(1, 3), (1, 5, 9), strict=True):
        choices(axes, actions[:, :, charge], names, f"charge {charge}", "channel of user 1", "channel of user 2")
    key(figure, names)
    save_figure(figure, TARGET / "example-downlink.png")


def field() -> None:
    """Where the robot is."""
    mdp = hazard_grid(1024)
    hazards = mdp.rewards[mdp.names.index("hazard"), :, 0].reshape(32, 32)
    stations = mdp.rewards[mdp.names.index("first"), :, 0].reshape(32, 32)
    kernel = kernel_of(mdp)
    figure = new_figure(9.0, 4.4)
    panels = figure.subplots(1, 2)
    limits = ({}, {"hazard": 3.0})
    for axes, most, title in zip(panels, limits, ("no limit", "hazard at most 3"), strict=True):
        solution = arnpg.solve(mdp, arnpg.Constrained("first", at_most=most))
        visits = kernel.occupancy(kernel.evaluate(solution.policy.probabilities)).reshape(32, 32)
        shown = axes.imshow(np.log10(visits), cmap="Greys", vmin=-5, vmax=-1, origin="lower")
        for cells, mark, colour, label in ((hazards, "s", RED, "hazard"), (stations, "o", BLUE, "station")):
            rows, columns = np.nonzero(cells)
            axes.scatter(columns, rows, s=9, marker=mark, color=colour, alpha=0.55, linewidths=0, label=label)
        axes.set(title=title, xlabel="column", ylabel="row")
    figure.colorbar(shown, ax=panels, label="log10 of the share of time", shrink=0.9)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    save_figure(figure, TARGET / "example-grid.png")


def tradeoffs() -> None:
    """A limit that sweeps, and a Pareto front."""
    mdp = multiclass_queue(1000)
    limits = np.linspace(0.5, 8.0, 16)
    criterion = arnpg.Constrained("served 1", at_most={"waiting": 1.0})
    arnpg.tradeoff(mdp, criterion, sweep={"waiting": limits}).plot(TARGET / "tradeoff-sweep.png")
    arnpg.tradeoff(mdp, ("served 1", "-waiting"), points=15).plot(TARGET / "tradeoff-front.png")


def main() -> None:
    """Write every picture."""
    TARGET.mkdir(exist_ok=True)
    for draw in (queue, shop, ward, station, field, tradeoffs):
        draw()


if __name__ == "__main__":
    main()
