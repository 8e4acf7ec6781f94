"""A made-up wheel of the engine's makers, and a copy of our project that repacks it; pip sees no network."""

import hashlib
import os
import platform
import re
import shutil
import zipfile
from pathlib import Path

__all__ = ["FILES", "TAGS", "offline", "put_project", "put_wheel"]

ROOT = Path(__file__).resolve().parents[2]
_INFO = "chdb_core_lite-26.5.0.dist-info"
TAGS = [f"cp39-abi3-manylinux_2_17_{platform.machine()}", f"cp39-abi3-manylinux2014_{platform.machine()}"]
_NAME = f"chdb_core_lite-26.5.0-cp39-abi3-manylinux2014_{platform.machine()}.manylinux_2_17_{platform.machine()}.whl"
_METADATA = """Metadata-Version: 2.4
Name: chdb-core-lite
Version: 26.5.0
Requires-Dist: pandas>=2.1.0
Requires-Dist: pyarrow>=13.0.0
"""
FILES = {
    "chdb/__init__.py": b"engine = 'made up'\n",
    "chdb/_chdb.abi3.so": bytes(range(256)) * 5_000,
    "chdb/session/state.py": b"",
    "chdb/test_chdb_datastore_v26_5_compat.py": b"import pytest\n",
    f"{_INFO}/METADATA": _METADATA.encode(),
    f"{_INFO}/WHEEL": "\n".join(
        ["Wheel-Version: 1.0", "Root-Is-Purelib: false", *(f"Tag: {tag}" for tag in TAGS), ""]
    ).encode(),
    f"{_INFO}/licenses/LICENSE.txt": b"Apache License\n",
}


def put_wheel(folder: Path, files: dict[str, bytes] = FILES) -> Path:
    """Records of it name no hashes, which pip allows: it looks at those of files that it is asked to check."""
    path = folder / _NAME
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(zipfile.ZipInfo("chdb/"), b"")
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (2026, 5, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
            wheel.writestr(entry, content)
        record = [*files, f"{_INFO}/RECORD"]
        wheel.writestr(f"{_INFO}/RECORD", "".join(f"{name},,\n" for name in record))
    return path


def put_project(folder: Path, makers: Path) -> Path:
    """A copy of `engine` that takes this wheel, and no other, for its makers'."""
    project = folder / "engine"
    shutil.copytree(ROOT / "engine", project, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    digest = hashlib.sha256(makers.read_bytes()).hexdigest()
    told = (project / "pyproject.toml").read_text()
    (project / "pyproject.toml").write_text(re.sub(r"sha256:[0-9a-f]{64}", f"sha256:{digest}", told))
    return project


def offline(links: Path) -> dict[str, str]:
    """An environment in which pip finds what lies in this folder. Builds use the pip that runs: no other can be had."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    pip = {"NO_INDEX": "1", "FIND_LINKS": str(links), "CONFIG_FILE": os.devnull, "NO_BUILD_ISOLATION": "0"}
    return plain | {f"PIP_{name}": value for name, value in pip.items()}
