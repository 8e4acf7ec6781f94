"""What a training process loads: importing the SDK must not pull in a server, a database engine or a framework.

How long the import takes is measured by `benchmarks/importtime.py`.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HEAVY = (
    "fastapi",
    "starlette",
    "uvicorn",
    "chdb",
    "clickhouse_connect",
    "pyarrow",
    "pandas",
    "torch",
    "ray",
)
SDK = ("strata", "strata.worker", "strata.client", "strata.checkpoint", "strata.data", "strata.sharding", "dtruntime")


@pytest.fixture(scope="module", autouse=True)
def pandas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Libraries import pandas where it is installed, and here it is not: an empty one shows who would."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "pandas.py").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        yield


def loaded_by(module: str, then: str = "pass") -> set[str]:
    code = f"import {module}, sys; {then}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(shown.stdout.split())


@pytest.mark.parametrize("module", SDK)
def test_the_sdk_loads_nothing_heavy(module: str) -> None:
    assert loaded_by(module) & set(HEAVY) == set()


def test_using_every_public_name_loads_nothing_heavy_either() -> None:
    loaded = loaded_by("strata", "[getattr(strata, name) for name in strata.__all__]")
    assert "numpy" in loaded, "the names were not really used"
    assert loaded & set(HEAVY) == set()


def test_a_script_that_only_logs_loads_no_checkpoints_and_no_data(tmp_path: Path) -> None:
    """Its first point is on its way within a second of its start: benchmarks/start.py."""
    logs = "run = strata.init(); run.log({'loss': 1.0}); run.finish(); seen = sys.modules"
    shows = "print(*[name for name in seen if name.startswith('strata.')], 'numpy' in seen, 'pydantic' in seen)"
    code = f"import strata, sys; {logs}; {shows}"
    shown = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "STRATA_DATA_DIR": str(tmp_path)},
    )
    *modules, numpy, pydantic = shown.stdout.split()
    assert (numpy, pydantic) == ("False", "False")
    assert "strata.worker.reporter" in modules, "the script did not log"
    heavy = ("strata.checkpoint", "strata.data", "strata.storage", "strata.sharding", "strata.worker.session")
    assert [name for name in modules if name.startswith(heavy) and name != "strata.datadir"] == []


@pytest.mark.parametrize("part", ["up", "nodes", "lists"])
def test_a_command_loads_nothing_that_only_others_need(part: str) -> None:
    """`strata up` starts four processes: each of them would pay for it."""
    assert loaded_by(f"strata.cli.{part}") & {*HEAVY, "grpc", "numpy", "pydantic"} == set()


def test_a_server_of_strata_up_loads_nothing_of_the_command_line() -> None:
    assert loaded_by("strata.cli.server") & {"typer", "rich", "click"} == set()
    for server in ("coordinator", "agent"):
        loaded = loaded_by(f"strata.{server}.server")
        assert "grpc" in loaded
        assert loaded & {*HEAVY, "pydantic", "typer", "rich"} == set()
    assert "numpy" not in loaded_by("strata.agent.server"), "an agent computes nothing"


def test_an_observatory_loads_no_library_of_datasets_and_no_engine() -> None:
    for part in ("server", "store.process"):
        assert loaded_by(f"strata.observatory.{part}") & {"chdb", "clickhouse_connect", "pandas", "pyarrow"} == set()


def test_the_check_sees_what_is_loaded() -> None:
    assert "fastapi" in loaded_by("fastapi")
    assert "pandas" in loaded_by("pandas")
