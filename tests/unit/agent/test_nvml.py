"""The driver's library, loaded as an agent loads it: what cards there are, what they do, and what one does not tell."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_nvml import build_fake_nvml

_LOOK = """
import json
from strata.agent.nvml import Nvml
nvml = Nvml()
uuids = nvml.uuids()
fields = ("gpu_id", "utilization_percent", "memory_used_bytes", "memory_total_bytes", "temperature_celsius")
rows = [[getattr(nvml.usage(index), field) for field in fields] for index in range(len(uuids))]
print(json.dumps([uuids, rows]))
"""


def _look(environment: dict[str, str]) -> tuple[list[str], list[list[Any]]]:
    """In a process of its own: a library that is loaded stays."""
    command = [sys.executable, "-c", _LOOK]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=True, timeout=120)
    uuids, rows = json.loads(done.stdout)
    return uuids, rows


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return build_fake_nvml(tmp_path_factory.mktemp("driver"))


def test_cards_are_read_from_the_driver(driver: dict[str, str]) -> None:
    uuids, rows = _look(driver)
    assert uuids == [f"GPU-{number}000-fake" for number in range(4)]
    assert rows[1] == [1, 20.0, 2 << 30, 80 << 30, 41.0]
    assert math.isnan(rows[3][1])  # it does not count its use; the rest of it is told
    assert rows[3][2:] == [4 << 30, 80 << 30, 43.0]


def test_a_card_that_is_gone_takes_no_other_with_it(driver: dict[str, str]) -> None:
    uuids, rows = _look({**driver, "FAKE_NVML_LOST": "1"})
    assert uuids == ["GPU-0000-fake", "", "GPU-2000-fake", "GPU-3000-fake"]
    assert math.isnan(rows[1][1])
    assert math.isnan(rows[1][4])
    assert rows[1][2:4] == [0, 0]
    assert rows[2][1] == 30.0


def test_without_a_driver_there_are_no_cards(tmp_path: Path) -> None:
    broken = tmp_path / "libnvidia-ml.so.1"
    broken.write_text("no library")
    assert _look({}) == ([], [])
    assert _look({"LD_LIBRARY_PATH": str(tmp_path)}) == ([], [])
