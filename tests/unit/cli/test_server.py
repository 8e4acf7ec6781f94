"""A server as `strata up` starts it: the supervisor's words become settings, a refusal is one line."""

import subprocess
import sys
from pathlib import Path

import pytest

from strata.cli.server import main


def test_a_refusal_is_one_line_with_what_to_do(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "strata.cli.server", "coordinator", "--data-dir", str(tmp_path)]
    done = subprocess.run([*command, "--grpc-port", "70000"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "error: grpc_port = '70000' is not valid: Input should be less than or equal to 65535. "
    )
    assert done.stderr.count("\n") == 1


def test_words_are_settings_and_those_that_are_repeated_a_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["observatory", "--data-dir", str(tmp_path), "--coordinator", "h:1"]
    assert main([*words, "--allow-origin", "https://a:1", "--allow-origin", "*"]) == 1
    assert "allowed_origins = ['https://a:1', '*'] is not valid: '*' is not an origin" in capsys.readouterr().err
    assert main([*words[:3], "--coordinator", "nowhere"]) == 1
    assert "coordinator_addr = 'nowhere' is not valid" in capsys.readouterr().err
