"""The rehearsal of the README's commands, run on a small repository of its own: real clone, real processes."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent.parent
SERVER = """
import http.server, json, pathlib

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<script>")

server = http.server.HTTPServer(("127.0.0.1", 0), Page)
pathlib.Path(".strata").mkdir()
pathlib.Path(".strata/endpoints.json").write_text(json.dumps({"http": f"http://127.0.0.1:{server.server_port}"}))
server.serve_forever()
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "scripts").mkdir(parents=True)
    shutil.copy2(ROOT / "scripts" / "fresh.py", folder / "scripts" / "fresh.py")
    (folder / "server.py").write_text(SERVER)
    (folder / "Makefile").write_text(f"run:\n\t@exec {sys.executable} server.py\ntest:\n\t@env > {tmp_path}/env\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run([*git, "init", "-q"], cwd=folder, check=True)
    subprocess.run([*git, "add", "."], cwd=folder, check=True)
    subprocess.run([*git, "commit", "-q", "-m", "start"], cwd=folder, check=True)
    return folder


def fresh(repository: Path, command: str, **env: str) -> subprocess.CompletedProcess[str]:
    """As a shell's background job, which ignores Ctrl-C."""
    script = [sys.executable, str(repository / "scripts" / "fresh.py"), command]

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    return subprocess.run(script, capture_output=True, text=True, env=os.environ | env, check=False, preexec_fn=ignore)


def test_run_waits_for_the_page_then_stops_everything(repository: Path) -> None:
    done = fresh(repository, "run")
    assert done.returncode == 0, done.stderr
    assert "the page answers at http://127.0.0.1:" in done.stdout
    assert "make run, cold:" in done.stdout


def test_test_sees_an_empty_home_and_only_what_reaches_the_index(repository: Path, tmp_path: Path) -> None:
    done = fresh(repository, "test", STRATA_TOKEN="secret", HTTPS_PROXY="proxy", PYTHONPATH="elsewhere")
    assert done.returncode == 0, done.stderr
    seen = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines() if "=" in line)
    assert seen["HOME"] != os.environ.get("HOME")
    assert seen["HTTPS_PROXY"] == "proxy"
    assert "STRATA_TOKEN" not in seen
    assert "PYTHONPATH" not in seen


def test_files_that_are_not_committed_yet_come_along(repository: Path, tmp_path: Path) -> None:
    (repository / "new.txt").write_text("new")
    (repository / "server.py").unlink()
    (repository / "Makefile").write_text(f"test:\n\t@ls > {tmp_path}/ls\n")
    assert fresh(repository, "test").returncode == 0
    assert (tmp_path / "ls").read_text().split() == ["Makefile", "new.txt", "scripts"]


def test_a_command_that_fails_is_one_line_and_a_code(repository: Path) -> None:
    (repository / "Makefile").write_text("run test:\n\t@exit 3\n")
    for command, words in (("test", "`make test` ended with code 2"), ("run", "`make run` ended by itself")):
        done = fresh(repository, command)
        assert done.returncode == 1
        assert words in done.stderr
