"""The rules of ARCHITECTURE.md as checks: layers, cycles, each library in its place, file sizes, `__all__`, the tree.

Reads source text only (no import of strata), so a broken module cannot hide from it.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from scripts import tree

ROOT = Path(__file__).resolve().parent.parent
CEILING = 400

# Top to bottom. A unit may import units of lower rows, and of its own row only itself.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("demo",),
    ("integrations", "wandb"),
    ("coordinator", "observatory", "agent", "worker"),
    ("checkpoint", "data", "launchers", "client", "gate"),
    ("cluster",),
    ("storage", "sharding", "protocol", "grpcserver"),
    ("trust",),
    ("config", "datadir", "error_codes", "heap", "lockfile", "log_budget", "logs", "network", "pages", "precedence"),
    ("types", "errors", "clock", "ambient"),
)
WITHIN_A_ROW = {("types", "errors")}
# The SDK's face re-exports; a training script must never load these through it.
NOT_IN_THE_FACE = {"cli", "coordinator", "observatory", "agent"}

PURE = ("strata.types", "strata.sharding", "strata.cluster", "strata.coordinator.state")
IMPURE_MODULES = {"asyncio", "concurrent", "multiprocessing", "queue", "selectors", "socket", "subprocess", "threading"}
STANDARD_LIBRARY_ONLY = ("strata.types", "strata.errors", "strata.clock", "strata.ambient")

# A library and the only places that may import it, lazily or not.
WIRE = (
    "strata.protocol",
    "strata.client",
    "strata.grpcserver",
    "strata.gate",
    "strata.agent.relay",
    "strata.coordinator.rpc",
    "strata.coordinator.server",
    "strata.observatory.cluster",
    "strata.observatory.ingest",
    "strata.observatory.server",
)
HOMES: dict[str, tuple[str, ...]] = {
    "grpc": WIRE,
    "grpc_health": WIRE,
    "grpc_reflection": WIRE,
    "hpack": ("strata.grpcserver",),
    "cryptography": ("strata.trust.authority",),
    "chdb": ("strata.observatory.store",),
    "clickhouse_connect": ("strata.observatory.store",),
    "fastapi": ("strata.observatory",),
    "starlette": ("strata.observatory",),
    "uvicorn": ("strata.observatory",),
    "pyarrow": ("strata.data",),
    "obstore": ("strata.storage",),
    "asyncpg": ("strata.coordinator.journal",),
    "ray": ("strata.launchers.ray",),
    "typer": ("strata.cli",),
    "mcp": ("strata.cli.mcp",),
    "pydantic_settings": ("strata.config.judge",),
    "torch": ("strata.integrations",),
    "lightning": ("strata.integrations",),
    "transformers": ("strata.integrations",),
    "accelerate": ("strata.integrations",),
    "jax": ("strata.integrations",),
    "tensorflow": ("strata.integrations",),
    "pickle": ("strata.integrations.dcp_folder",),  # a reader of ours that makes nothing but plain records
    "cloudpickle": (),
    "marshal": (),
    "shelve": (),
}


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    path: Path
    tree: ast.Module

    @property
    def unit(self) -> str:
        """The layer's name: strata.types.names → types; the face itself has none."""
        return self.name.split(".")[1] if "." in self.name else ""

    def is_in(self, *packages: str) -> bool:
        return any(self.name == package or self.name.startswith(package + ".") for package in packages)


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name: `from a.b import c` is a.b.c, and whether c is a module is decided by who asks."""

    module: Module
    line: int
    target: str

    def __str__(self) -> str:
        return f"{self.module.path.relative_to(ROOT)}:{self.line} imports {self.target}"


@cache
def modules() -> dict[str, Module]:
    found = {}
    for path in sorted((ROOT / "strata").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if "generated" in parts:
            continue
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, path, ast.parse(path.read_text(encoding="utf-8")))
    return found


@cache
def imports() -> tuple[Import, ...]:
    return tuple(found for module in modules().values() for found in _imports_of(module))


def _imports_of(module: Module) -> Iterator[Import]:
    """Every import of the file: at the top, inside functions, for typing only."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (Import(module, node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.path}:{node.lineno}: imports are absolute"
            yield from (Import(module, node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _row(unit: str) -> int:
    for number, units in enumerate(LAYERS):
        if unit in units:
            return number
    pytest.fail(f"strata.{unit} has no layer: give it one in LAYERS and in ARCHITECTURE.md")


def _points_down(source: str, target: str) -> bool:
    if source == target or (source, target) in WITHIN_A_ROW:
        return True
    return _row(source) < _row(target)


def test_imports_point_down_and_siblings_never_meet() -> None:
    wrong = []
    for found in imports():
        parts = found.target.split(".")
        if parts[0] != "strata" or found.module.unit == "" or found.target == "strata.__version__":
            continue
        target = parts[1] if len(parts) > 1 else ""
        from_the_face = f"strata.{target}" not in modules()
        if from_the_face and found.module.unit in ("cli", "demo"):
            continue
        if from_the_face or not _points_down(found.module.unit, target):
            wrong.append(str(found))
    assert not wrong, "\n".join(wrong)


def test_every_unit_has_its_layer_here_and_on_the_page() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    picture = page.partition("## Layers")[2].partition("## Words")[0]
    for unit in {module.unit for module in modules().values()} - {"", "__main__"}:
        _row(unit)
        assert re.search(rf"\b{unit}\b", picture), f"the picture of the layers lacks {unit}"


def test_the_face_loads_only_what_a_training_script_needs() -> None:
    forbidden = tuple(f"strata.{unit}." for unit in NOT_IN_THE_FACE)
    face = [found for found in imports() if found.module.name == "strata"]
    wrong = [str(found) for found in face if f"{found.target}.".startswith(forbidden)]
    assert not wrong, "\n".join(wrong)


def test_there_are_no_cycles_not_even_lazy_ones() -> None:
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for found in imports():
        parent = found.target.rpartition(".")[0]
        target = found.target if found.target in modules() else parent
        if target in modules() and target != found.module.name and found.target != "strata.__version__":
            graph[found.module.name].add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("import cycle: " + " → ".join(reversed(error.args[1])))


def _package(name: str) -> str:
    return name if modules()[name].path.name == "__init__.py" else name.rpartition(".")[0]


def test_there_are_no_rings_of_packages() -> None:
    """A folder is a room. Rooms that import each other are one room with two doors. The modules right below `strata`
    are no room: their layers are checked one by one."""
    graph: dict[str, set[str]] = {_package(name): set() for name in modules()}
    for found in imports():
        target = found.target if found.target in modules() else found.target.rpartition(".")[0]
        if target in modules():
            source, room = _package(found.module.name), _package(target)
            if "strata" not in (source, room) and source != room:
                graph[source].add(room)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("ring of packages: " + " → ".join(reversed(error.args[1])))


def test_pure_packages_know_no_threads_loops_or_clocks() -> None:
    wrong = [
        str(found)
        for found in imports()
        if found.module.is_in(*PURE) and found.target.split(".")[0] in IMPURE_MODULES | {"time"}
    ]
    assert not wrong, "\n".join(wrong)


def test_the_base_uses_only_the_standard_library() -> None:
    wrong = []
    for found in imports():
        top = found.target.split(".")[0]
        if found.module.is_in(*STANDARD_LIBRARY_ONLY) and top != "strata" and top not in sys.stdlib_module_names:
            wrong.append(str(found))
    assert not wrong, "\n".join(wrong)


def test_libraries_are_imported_only_in_their_one_place() -> None:
    wrong = []
    for found in imports():
        homes = HOMES.get(found.target.split(".")[0])
        if homes is not None and not found.module.is_in(*homes):
            wrong.append(f"{found} (its place: {', '.join(homes) or 'nowhere'})")
    assert not wrong, "\n".join(wrong)


def test_no_module_is_a_drawer() -> None:
    drawers = re.compile(r"(.*_)?(utils?|helpers?|common|misc)")
    wrong = [name for name in modules() if drawers.fullmatch(name.rpartition(".")[2])]
    assert not wrong, "\n".join(wrong)


def _sources() -> Iterator[Path]:
    for folder in ("strata", "dtruntime", "engine", "tests", "benchmarks", "scripts", "examples"):
        yield from (ROOT / folder).rglob("*.py")
    for suffix in ("ts", "tsx", "css"):
        yield from (ROOT / "dashboard" / "src").rglob(f"*.{suffix}")


def test_no_file_is_longer_than_the_ceiling() -> None:
    wrong = []
    for path in _sources():
        if "generated" in path.parts or ".gen." in path.name:
            continue
        num_lines = len(path.read_text(encoding="utf-8").splitlines())
        if num_lines > CEILING:
            wrong.append(f"{path.relative_to(ROOT)}: {num_lines} lines, split it by noun")
    assert not wrong, "\n".join(wrong)


def test_unit_tests_mirror_the_tree() -> None:
    """Who changes a package finds its tests under the same name."""
    unit = ROOT / "tests" / "unit"
    folders = {file.parent.relative_to(unit) for file in unit.rglob("test_*.py")}
    homes = (ROOT / "strata", ROOT)
    assert [str(folder) for folder in sorted(folders) if not any((home / folder).is_dir() for home in homes)] == []


def _public_names(tree: ast.Module) -> list[str]:
    """What a reader of the file would take for its public names; imports are not, except in an `__init__`."""
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
    return [name for name in names if not name.startswith("_")]


def _declared(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            declared: list[str] = ast.literal_eval(node.value)
            return declared
    return None


def _order(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest: the order that ruff's RUF022 writes."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_every_public_module_declares_its_names_sorted() -> None:
    wrong = []
    for module in modules().values():
        declared = _declared(module.tree)
        is_private = module.path.stem.startswith("_") and module.path.stem != "__init__"
        if declared is None and _public_names(module.tree) and not is_private:
            wrong.append(f"{module.name}: no __all__")
        if declared is not None and declared != sorted(declared, key=_order):
            wrong.append(f"{module.name}: __all__ is not sorted")
    assert not wrong, "\n".join(wrong)


def test_every_module_says_its_job() -> None:
    wrong = [module.name for module in modules().values() if module.tree.body and not ast.get_docstring(module.tree)]
    assert not wrong, "\n".join(wrong)


def test_the_page_of_the_tree_is_the_real_tree() -> None:
    assert tree.PAGE.read_text(encoding="utf-8") == tree.render(), "run `make tree`"


def test_every_file_says_what_it_is_for() -> None:
    assert not tree.speechless()


def test_the_map_fits_on_two_screens() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()) <= 110


def test_no_door_checks_rights_by_itself() -> None:
    """Tokens, secrets and users are compared in strata/trust, and doors ask its table. The REST guard speaks of tokens
    where a browser signs in; the ranks' meeting is no server's door."""
    words = re.compile(r"compare_digest|SO_PEERCRED|Unauthenticated\(")
    allowed = ("strata.trust", "strata.observatory.http.auth", "strata.errors", "strata.worker.collective.meeting")
    sources = {module.name: module.path.read_text(encoding="utf-8") for module in modules().values()}
    asking = {name for name, text in sources.items() if words.search(text)}
    assert not [name for name in asking if not modules()[name].is_in(*allowed)], "ask strata/trust/table.py instead"
