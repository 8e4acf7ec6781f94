"""The dashboard: app → features → components → hooks → stores, data → api → lib; a feature never imports another.

Imports of types alone cost nothing at run time and may point anywhere.
"""

import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parent.parent / "dashboard" / "src"
LAYERS = (
    ("main", "testing"),
    ("app",),
    ("features",),
    ("components",),
    ("hooks",),
    ("stores", "data"),
    ("api",),
    ("lib",),
)
RANKS = {folder: rank for rank, folders in enumerate(LAYERS) for folder in folders}
STATIC = r"""^(?:import|export)\s+(?!type\b)[^;]*?from\s+"([^"]+)\""""
LAZY = r"""\bimport\(\s*"([^"]+)"\s*\)"""
IMPORT = re.compile(f"{STATIC}|{LAZY}", re.MULTILINE)


@cache
def imports() -> dict[str, set[str]]:
    """File → files it imports, both without their suffix and relative to src; libraries are left out."""
    found: dict[str, set[str]] = {}
    for path in sorted([*SRC.rglob("*.ts"), *SRC.rglob("*.tsx")]):
        if ".test." in path.name:
            continue
        targets = (match[1] or match[2] for match in IMPORT.finditer(path.read_text(encoding="utf-8")))
        found[_name(path)] = {_resolve(path, target) for target in targets if target.startswith((".", "@/"))}
    return found


def _name(path: Path) -> str:
    return path.relative_to(SRC).as_posix().partition(".")[0]


def _resolve(path: Path, target: str) -> str:
    if target.startswith("@/"):
        return target.removeprefix("@/").partition(".")[0]
    return _name((path.parent / target).resolve())


def _layer(name: str) -> str:
    layer = name.split("/")[0]
    assert layer in RANKS, f"dashboard/src/{layer} has no layer: give it a rank in {__file__}"
    return layer


def test_the_check_sees_the_imports() -> None:
    assert sum(len(targets) for targets in imports().values()) > 100


def test_imports_point_down() -> None:
    wrong = [
        f"{source} imports {target}"
        for source, targets in imports().items()
        for target in targets
        if RANKS[_layer(source)] > RANKS[_layer(target)]
    ]
    assert not wrong, "\n".join(wrong)


def test_a_feature_never_imports_another() -> None:
    wrong = [
        f"{source} imports {target}"
        for source, targets in imports().items()
        for target in targets
        if source.startswith("features/")
        and target.startswith("features/")
        and source.split("/")[1] != target.split("/")[1]
    ]
    assert not wrong, "\n".join(wrong)


def test_there_are_no_cycles() -> None:
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        pytest.fail("import cycle: " + " → ".join(reversed(error.args[1])))
