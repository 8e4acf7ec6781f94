"""`strata doctor` names what is wrong, and what to do about it."""

import json
import socket
from pathlib import Path
from typing import Any

from tests.support.cluster import strata_each
from tests.support.ports import free_ports

_FREE = {f"STRATA_{name}_PORT": "0" for name in ("GRPC", "HTTP", "TELEMETRY")}


def test_each_trouble_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    nobody = f"http://127.0.0.1:{free_ports(1)[0]}"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        troubles: dict[str, dict[str, str]] = {
            "": {},
            "data folder": {"STRATA_DATA_DIR": str(tmp_path / "file" / "data")},
            "http port": {"STRATA_HTTP_PORT": str(taken.getsockname()[1])},
            "checkpoints": {
                "STORAGE_BACKEND": "s3",
                "CHECKPOINT_BUCKET": "models",
                "AWS_ENDPOINT_URL": nobody,
                "AWS_ACCESS_KEY_ID": "a",
                "AWS_SECRET_ACCESS_KEY": "b",
                "AWS_REGION": "us-east-1",
            },
            "metric store": {"CH_HOST": "127.0.0.1", "CH_PORT": nobody.rpartition(":")[2]},
            "settings": {"HEARTBEAT_TIMEOUT": "soon"},
        }
        data = {"STRATA_DATA_DIR": str(tmp_path / "data")}
        commands = [(("doctor", "--json"), {**_FREE, **data, **trouble}) for trouble in troubles.values()]
        for wrong, done in zip(troubles, strata_each(commands), strict=True):
            findings: list[dict[str, Any]] = json.loads(done.stdout)
            failed = {one["check"]: one for one in findings if one["status"] == "failed"}
            assert list(failed) == ([wrong] if wrong else []), (wrong, done.stdout, done.stderr)
            assert (done.returncode, all(one["todo"] for one in failed.values())) == (bool(wrong), True)


def test_a_folder_is_a_store_that_is_tried(tmp_path: Path) -> None:
    bucket = tmp_path / "shared"
    env = {**_FREE, "STRATA_DATA_DIR": str(tmp_path / "data"), "CHECKPOINT_BUCKET": str(bucket)}
    (done,) = strata_each([(("doctor", "--json"), env)])
    found = next(one for one in json.loads(done.stdout) if one["check"] == "checkpoints")
    assert (found["status"], found["found"]) == ("ok", f"{bucket}: written, read back and removed")
    assert [path for path in bucket.rglob("*") if path.is_file()] == []
    extras = next(one for one in json.loads(done.stdout) if one["check"] == "other extras")
    assert {"data", "mcp", "postgres", "s3"} <= {extra.split()[0] for extra in extras["found"].split(", ")}


def test_engines_in_each_others_way_are_named_and_the_full_one_alone_is_right(tmp_path: Path) -> None:
    """Packages are known by their metadata; that of more of them lies on the path."""
    for name, others in (("none", ()), ("old", ("chdb_core_lite",)), ("full", ("chdb", "chdb_core"))):
        for other in others:
            info = tmp_path / name / f"{other}-26.9.0.dist-info"
            info.mkdir(parents=True)
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {other.replace('_', '-')}\nVersion: 26.9.0\n")
    env = {**_FREE, "STRATA_DATA_DIR": str(tmp_path / "data")}
    found = {}
    for name in ("none", "old", "full"):
        (done,) = strata_each([(("doctor", "--json"), env)], PYTHONPATH=str(tmp_path / name))
        found[name] = next(one for one in json.loads(done.stdout) if one["check"] == "engine")
    assert (found["none"]["status"], found["none"]["found"].split()[0]) == ("ok", "strata-engine")
    assert (found["old"]["status"], found["full"]["status"]) == ("warning", "warning")
    assert found["old"]["todo"].startswith("pip uninstall -y strata-engine chdb-core-lite, then pip install ./engine")
    assert "strata-engine, chdb-core, chdb write into the same folder" in found["full"]["found"]
