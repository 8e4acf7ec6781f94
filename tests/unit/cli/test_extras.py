"""Without the server's libraries the commands that need them say which command installs them."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from strata.cli.extras import SERVER_MODULES
from tests.support.cluster import strata_each

ROOT = Path(__file__).resolve().parents[3]
_HIDE = "import sys\nfor name in {names!r}: sys.modules[name] = None\n"
_IMPORT_ALL = """
import importlib, pkgutil
for part in ("agent", "client", "worker"):
    package = importlib.import_module(f"strata.{part}")
    for module in pkgutil.walk_packages(package.__path__, f"strata.{part}."):
        if module.name != "strata.agent.becoming":  # a program, run by its path
            print(importlib.import_module(module.name).__name__)
"""


def test_a_missing_extra_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(_HIDE.format(names=["fastapi", "uvicorn", "chdb"]))
    script = tmp_path / "train.py"
    script.write_text("")
    ports = {f"STRATA_{name}_PORT": "0" for name in ("GRPC", "HTTP", "TELEMETRY")}
    environment = {**ports, "STRATA_DATA_DIR": str(tmp_path / "data")}
    commands = (("up",), ("demo",), ("coordinator",), ("observatory",), ("run", str(script)))
    for done in strata_each([(command, environment) for command in commands], PYTHONPATH=str(tmp_path)):
        assert done.returncode != 0, done.args
        assert "chdb, fastapi, uvicorn is not installed" in done.stderr, done.args
        assert "pip install ./engine 'strata-runtime[server]'" in done.stderr
        assert "Traceback" not in done.stderr


def test_where_an_engine_is_there_none_is_installed_beside_it() -> None:
    """It may be the full `chdb`, into whose folder ours would write."""
    code = (
        _HIDE.format(names=["uvloop"])
        + "from strata.cli.extras import require_server\nrequire_server(with_engine=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "uvloop is not installed" in done.stderr
    assert "pip install 'strata-runtime[lean]'" in done.stderr


def test_what_trains_on_parquet_says_so_before_it_starts_a_server(tmp_path: Path) -> None:
    """The engine's package brought pyarrow once; the extra `server` does not."""
    (tmp_path / "sitecustomize.py").write_text(_HIDE.format(names=["pyarrow"]))
    environment = {"STRATA_DATA_DIR": str(tmp_path / "data")}
    commands = [((command,), environment) for command in ("demo", "chaos")]
    for done in strata_each(commands, PYTHONPATH=str(tmp_path)):
        assert done.returncode != 0, done.args
        assert "pyarrow is not installed" in done.stderr, done.args
        assert "pip install 'strata-runtime[data]'" in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_rank_and_an_agent_need_nothing_of_it() -> None:
    """The quickstart promises it: `pip install strata-runtime` is enough on the hosts that train."""
    code = _HIDE.format(names=SERVER_MODULES) + _IMPORT_ALL
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"strata.worker.run", "strata.agent.server", "strata.client.tie"} <= set(done.stdout.split())


def test_the_list_is_that_of_the_extra() -> None:
    names = {"clickhouse-connect": "clickhouse_connect", "prometheus-client": "prometheus_client"}
    names |= {"grpcio-health-checking": "grpc_health", "grpcio-reflection": "grpc_reflection"}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = [item.partition(">")[0] for item in extras["lean"]]
    assert sorted(SERVER_MODULES) == sorted(names.get(item, item) for item in wanted)
    assert [item.partition(">")[0] for item in extras["server"]] == ["strata-engine", "strata-runtime[lean]"]


def test_the_engine_is_needed_only_where_no_server_is_set() -> None:
    check = "from strata.cli.extras import require_server\nrequire_server(with_engine={})\n"
    hidden = _HIDE.format(names=["chdb", "pyarrow", "pandas"])
    for needed in (False, True):
        code = hidden + check.format(needed)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert ("chdb is not installed" in done.stderr, done.returncode != 0) == (needed, needed), done.stderr


def test_the_readme_names_every_extra_and_the_page_says_what_each_is_for() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    readme = (ROOT / "README.md").read_text()
    assert [name for name in extras if f"`{name}`" not in readme and f"[{name}" not in readme] == []
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", (ROOT / "docs" / "install.md").read_text(), re.MULTILINE)
    assert sorted(name for name, _, _ in rows) == sorted(extras)
    assert all(brings.strip() and what_for.strip() for _, brings, what_for in rows)
