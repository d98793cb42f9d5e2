"""Imports point one way, as parsed from the source; and heavy packages are imported late."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import arnpg

SOURCE = Path(arnpg.__file__).parent
EDGES_OUT = {"cli", "report", "runs", "experiments", "examples", "training", "__main__"}  # what the core never imports
LAZY_EXCEPTIONS = {  # imported when first used: pictures by plot(), train() and examples as public names
    ("solution", "report.plots"),
    ("tradeoffs", "report.curves"),
    ("trained", "report.trained_chapter"),
    ("", "training"),
    ("", "examples"),
}
ENVIRONMENTS = {"gymnasium", "envpool", "mo_gymnasium", "mujoco"}
THIRD_PARTY_OPTIONAL = {"matplotlib", "plotly", "ray", "tensorboardX", "stormpy", *ENVIRONMENTS}


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(path: Path, toplevel_only: bool = False) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = ["arnpg", *path.relative_to(SOURCE).parts[:-1]]
    found = set()
    for node in tree.body if toplevel_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            base = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return found


def edges() -> set[tuple[str, str]]:
    found = set()
    modules = {module_of(path) for path in SOURCE.rglob("*.py")}
    for path in SOURCE.rglob("*.py"):
        for name in imported_names(path):
            inside = name.removeprefix("arnpg.") if name.startswith("arnpg.") else None
            if inside is None:
                continue
            target = inside if inside in modules else inside.rpartition(".")[0]
            found.add((module_of(path), target))
    return found


def top(module: str) -> str:
    return module.split(".")[0]


EDGES = edges() - LAZY_EXCEPTIONS


def test_the_parser_sees_imports():
    assert ("api", "criteria") in EDGES
    assert ("tabular.solve", "objectives") in EDGES
    assert len(EDGES) > 50


def test_core_never_imports_the_edges():
    wrong = [(a, b) for a, b in EDGES if top(b) in EDGES_OUT and top(a) not in EDGES_OUT]
    assert not wrong


@pytest.mark.parametrize("package", ["methods", "method", "inner_loop", "objectives", "loop", "criteria"])
def test_methods_and_interfaces_know_neither_world(package):
    wrong = [(a, b) for a, b in EDGES if top(a) == package and top(b) in {"tabular", "neural", "envs"}]
    assert not wrong


def test_tabular_and_neural_never_import_each_other():
    worlds = {"tabular": {"neural", "envs", "methods"}, "neural": {"tabular", "methods"}}
    wrong = [(a, b) for a, b in EDGES if top(b) in worlds.get(top(a), set())]
    assert not wrong


def test_interfaces_point_down():
    order = ["errors", "inner_loop", "objectives", "method", "methods", "recipes"]
    wrong = [(a, b) for a, b in EDGES if {top(a), top(b)} <= set(order) and order.index(top(a)) < order.index(top(b))]
    assert not wrong


def test_no_cycles_between_modules():
    graph: dict[str, set[str]] = {}
    for a, b in EDGES:
        if a and b and a != b:
            graph.setdefault(a, set()).add(b)
    # The command's subcommands share its exit codes, and its entry imports them by name at run time.
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join([*path, module])
        if module not in done:
            for following in sorted(graph.get(module, ())):
                visit(following, (*path, module))
            done.add(module)

    for module in sorted(graph):
        visit(module, ())


def test_extras_are_imported_inside_functions():
    for path in SOURCE.rglob("*.py"):
        heavy = {name.split(".")[0] for name in imported_names(path, toplevel_only=True)} & THIRD_PARTY_OPTIONAL
        assert not heavy, f"{module_of(path)} imports {heavy} at its top"


def test_only_the_edges_print():
    for path in SOURCE.rglob("*.py"):
        if top(module_of(path)) in EDGES_OUT:
            continue
        calls = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Call)]
        assert not [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"], module_of(path)


@pytest.mark.parametrize("code", ["import arnpg", "import arnpg.cli", "from arnpg.cli import main; main(['--help'])"])
def test_importing_is_light(code):
    check = f"{code}; import sys; assert not {{'jax', 'scipy', 'matplotlib', 'rich'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True, stdout=subprocess.DEVNULL)


def test_every_public_name_can_be_had():
    for name in arnpg.__all__:
        assert getattr(arnpg, name) is not None
    assert set(arnpg.__all__) <= set(dir(arnpg))
    with pytest.raises(AttributeError, match="no attribute 'solved'"):
        _ = arnpg.solved


def test_no_module_hides_a_public_name():
    """Importing ``arnpg.x`` sets the attribute ``x`` of the package, over whatever it was."""
    modules = {module_of(path) for path in SOURCE.rglob("*.py")} - {"envs", "examples"}
    assert not modules & set(arnpg.__all__)
