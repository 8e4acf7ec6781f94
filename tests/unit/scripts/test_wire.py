"""The page's types are what the API answers; a field that is renamed on one side only is found without a browser."""

import copy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scripts.contract.rest import openapi
from scripts.wire import ROOT, TARGET, render

DASHBOARD = ROOT / "dashboard"


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return dict(openapi())


def test_the_types_are_what_the_api_answers(schema: dict[str, Any]) -> None:
    assert TARGET.read_text(encoding="utf-8") == render(schema), "run `make wire`"


def test_every_answer_and_every_error_has_a_schema(schema: dict[str, Any]) -> None:
    for path, item in schema["paths"].items():
        for method, operation in item.items():
            answers = operation["responses"]
            assert [media["schema"] for media in answers["200"]["content"].values()], f"{method} {path}"
            for error in ("4XX", "5XX"):
                assert answers[error]["content"]["application/json"]["schema"]["$ref"].endswith("/ErrorAnswer")


def test_a_renamed_field_fails_the_page(tmp_path: Path, schema: dict[str, Any]) -> None:
    renamed = copy.deepcopy(schema)
    rename(renamed, "Worker", "assigned_shards")
    rename(renamed, "Delta", "new_series")
    assert render(renamed) != render(schema), "and `make check` says that the file is not what the API answers"
    said = type_check(tmp_path, render(renamed))
    for field, names in (("assigned_shards", "src/features/cluster/worker-columns.tsx"), ("new_series", "src/data/")):
        assert any(field in line and line.startswith(names) for line in said.splitlines()), said


def rename(schema: dict[str, Any], record: str, field: str) -> None:
    found = schema["components"]["schemas"][record]
    found["properties"][f"{field}_x"] = found["properties"].pop(field)
    found["required"] = [f"{field}_x" if name == field else name for name in found["required"]]


def type_check(folder: Path, types: str) -> str:
    """What tsc says of the whole page with these types of the wire."""
    shutil.copytree(DASHBOARD / "src", folder / "src")
    (folder / "src" / "api" / TARGET.name).write_text(types, encoding="utf-8")
    for name in ("tsconfig.json", "vite.config.ts"):
        shutil.copy(DASHBOARD / name, folder)
    (folder / "node_modules").symlink_to(DASHBOARD / "node_modules")
    command = [str(DASHBOARD / "node_modules" / ".bin" / "tsc"), "--noEmit"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode != 0
    return done.stdout
