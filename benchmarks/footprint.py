"""What Strata takes of a machine that does nothing yet: the memory of an idle `strata up`, and what an installation of
the `server` extra downloads, with what the engine's own build needs.

Memory is PSS as on a machine of its own: what processes wrote to, and of each file that they map the largest part that
one of them holds. The kernel's own PSS (`pss_bytes`) is smaller where others, such as another Python, share the files.
"""

import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import psutil

from benchmarks.harness import Benchmark, Case, Target, Variant, floor, ours
from engine.repack import Project, fetch
from tests.support.cluster import Cluster, descendants

__all__ = ["BENCHMARK"]

_ROOT = Path(__file__).resolve().parent.parent
_SETTLE_S = 30.0
_STORE = "strata.observatory.store.process"
_ENGINE = (
    "import sys; from chdb.session import Session; session = Session(); session.query('SELECT 1'); "
    "print(flush=True); sys.stdin.read()"
)


_MAPPING = re.compile(r"[0-9a-f]+-[0-9a-f]+ \S+ (\S+ \S+ \d+)\s*(.*)")
_OWN_EXTRA = re.compile(r"strata-runtime\[(\w+)\]")


def pss_bytes(pid: int) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))


def alone_bytes(pids: Iterable[int]) -> tuple[int, int]:
    """What these processes wrote to, and the files that they map, each place of a file once."""
    written, files, place = 0, dict[str, int](), ""
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
            if mapping := _MAPPING.fullmatch(line):
                place = " ".join(mapping.groups())
            elif line.startswith("Rss:"):
                resident = int(line.split()[1]) * 1024
            elif line.startswith("Anonymous:"):
                own = int(line.split()[1]) * 1024
                written += own
                files[place] = max(files.get(place, 0), resident - own)
    return written, sum(files.values())


def idle(stack: ExitStack) -> tuple[Variant, ...]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strata-bench-foot-")))
    cluster = stack.enter_context(Cluster(folder))
    cluster.wait_for_store()
    time.sleep(_SETTLE_S)

    def measure() -> dict[str, float]:
        processes = [psutil.Process(cluster.process.pid), *descendants(cluster.process.pid)]
        parts = dict.fromkeys(("supervisor", "coordinator", "observatory", "store", "agent"), 0.0)
        for process in processes:
            words = process.cmdline()
            part = "store" if _STORE in words else next((name for name in parts if name in words), "supervisor")
            parts[part] += pss_bytes(process.pid)
        written, files = alone_bytes(process.pid for process in processes)
        return {
            "alone_bytes": float(written + files),
            "written_bytes": float(written),
            "files_bytes": float(files),
            "pss_bytes": sum(parts.values()),
            **{f"{name}_bytes": size for name, size in parts.items()},
            "threads": float(sum(process.num_threads() for process in processes)),
        }

    return ours(measure, label="strata up, 30 s after its store was ready"), floor(
        "the engine answers SELECT 1", engine
    )


def engine() -> dict[str, float]:
    with subprocess.Popen(
        [sys.executable, "-c", _ENGINE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        return {
            "alone_bytes": float(sum(alone_bytes([process.pid]))),
            "threads": float(psutil.Process(process.pid).num_threads()),
        }


def download(*extras: str) -> dict[str, float]:
    """Every wheel of `pip install ./engine 'strata-runtime[EXTRA]'`, without pip's cache: what the extra asks for, and
    for the engine its makers' wheel and what its build asks for, as its own project fetches and names them."""
    pip = [sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check", "--no-cache-dir"]
    engine = Project.read()
    asked = required(*extras)
    others = [one for one in asked if not one.startswith(engine.name)]
    with tempfile.TemporaryDirectory(prefix="strata-bench-foot-") as made:
        folder = Path(made)
        subprocess.run([*pip, "-c", str(_ROOT / "constraints.txt"), "-d", made, *others], check=True)
        if len(others) < len(asked):
            fetch(engine, folder)
            told = tomllib.loads((_ROOT / "engine" / "pyproject.toml").read_text(encoding="utf-8"))
            subprocess.run([*pip, "-d", made, *told["build-system"]["requires"]], check=True)
        wheels = list(folder.glob("*.whl"))
        return {"download_bytes": float(sum(one.stat().st_size for one in wheels)), "wheels": float(len(wheels))}


def required(*extras: str) -> list[str]:
    """What these extras name, and those that they name."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [one for extra in extras for one in project["optional-dependencies"][extra]]
    inner = [found[1] for one in named if (found := _OWN_EXTRA.fullmatch(one))]
    others = [one for one in named if not _OWN_EXTRA.fullmatch(one)]
    return [*(required(*inner) if inner else project["dependencies"]), *others]


BENCHMARK = Benchmark(
    name="footprint",
    packages=("strata-engine", "grpcio", "fastapi"),
    cases=(
        Case(
            name="memory of an idle strata up",
            variants=idle,
            targets=(
                Target(
                    metric="alone_bytes",
                    versus=None,
                    at_most=300e6,
                    work="strata up, idle: memory, files counted once",
                    profile="the observatory has written 67 MB and the store 53, mostly modules of libraries; 49 are "
                    "the engine's code (ADR 35, ADR 41).",
                ),
            ),
            repeats=3,
            warmups=0,
        ),
        Case(
            name="download of the server extra",
            variants=(
                ours(partial(download, "server")),
                ours(partial(download, "lean"), name="lean", label="the extra lean, without the engine"),
            ),
            targets=(
                Target(
                    metric="download_bytes",
                    versus=None,
                    at_most=130e6,
                    work="server extra: download",
                    profile="half of it is the engine, 51 MB as its makers compiled it; the next are numpy (17 MB) and "
                    "grpcio (7 MB).",
                ),
            ),
            repeats=1,
            warmups=0,
        ),
    ),
)
