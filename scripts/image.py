"""Rehearses the Dockerfile without Docker: every stage in a clean Debian of its own, every RUN in its order, by chroot;
then starts what came out as its own user and asks it for its page. Needs root, debootstrap and a network.
"""

import argparse
import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUITE = "bookworm"
PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"
# How this machine reaches its package indexes; everything else of the environment stays behind.
KEPT = re.compile(r"(?i)lang|.*_proxy|.*cert.*|.*ca_bundle|pip_.*|npm_config_.*")
START_DEADLINE_S = 180.0


class Failed(Exception):
    """A step did not do what the Dockerfile says."""


@dataclass
class Stage:
    """One FROM and what follows it."""

    image: str
    name: str
    root: Path
    workdir: str = "/"
    user: str = "root"
    env: dict[str, str] = field(default_factory=dict)
    entrypoint: list[str] = field(default_factory=list)

    def run(self, command: str) -> None:
        argv, environment = self.call(command)
        done = subprocess.run(argv, env=environment, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Failed(f"{self.name}: `{command}` ended with {done.returncode}")

    def call(self, command: str) -> tuple[list[str], dict[str, str]]:
        """The command line and the environment of a command inside."""
        passed = {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}
        path = "/opt/python/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        home = "/root" if self.user == "root" else f"/home/{self.user}"
        argv = ["chroot", f"--userspec={self.user}", str(self.root), "/bin/sh", "-ec", f"cd {self.workdir}; {command}"]
        return argv, {"PATH": path, "HOME": home, **passed, **self.env}


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """(FROM, node:20 AS dashboard), (RUN, npm …), …: comments gone, continued lines joined."""
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"(?m)^\s*#.*\n", "", text))
    for line in filter(str.strip, joined.splitlines()):
        word, _, rest = line.strip().partition(" ")
        yield word.upper(), rest.strip()


@contextlib.contextmanager
def clean_debian(folder: Path, base: Path | None) -> Iterator[Path]:
    """A base to copy each stage from: given, or made now."""
    if base is None:
        base = folder / "base"
        subprocess.run(
            ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(base)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    yield base


def begin(base: Path, folder: Path, spec: str) -> Stage:
    """`node:20… AS dashboard`: Debian, and what that image adds to it."""
    image, _, name = re.sub(r"\s+AS\s+", " AS ", spec, flags=re.IGNORECASE).partition(" AS ")
    stage = Stage(image, name or "runtime", folder / (name or "runtime"))
    subprocess.run(["cp", "-a", "--reflink=auto", str(base), str(stage.root)], check=True)
    for file in ("/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf"):
        if Path(file).exists():
            shutil.copy(file, stage.root / file.lstrip("/"))
    if image.startswith("node:"):
        _copy_node(stage.root)
    else:
        stage.run("python3 -m venv /opt/python")
        pip = Path.home() / ".config" / "pip" / "pip.conf"
        if pip.exists():
            shutil.copy(pip, stage.root / "opt/python/pip.conf")
    return stage


def _copy_node(root: Path) -> None:
    """This machine's Node stands in for the image's: Debian's own is too old for Vite."""
    node = shutil.which("node")
    if node is None:
        raise Failed("node was not found: the dashboard's stage needs it")
    shutil.copy(node, root / "usr/local/bin/node")
    modules = Path(node).resolve().parents[1] / "lib" / "node_modules" / "npm"
    shutil.copytree(modules, root / "usr/local/lib/node_modules/npm", symlinks=True)
    (root / "usr/local/bin/npm").symlink_to("../lib/node_modules/npm/bin/npm-cli.js")


def copy(stage: Stage, stages: dict[str, Stage], rest: str) -> None:
    words = shlex.split(rest)
    source_root = ROOT
    if words[0].startswith("--from="):
        source_root = stages[words.pop(0).removeprefix("--from=")].root
    *sources, target = words
    into = stage.root / os.path.normpath(f"{stage.workdir}/{target}").lstrip("/")
    for source in sources:
        found = source_root / source.lstrip("/")
        if found.is_dir():
            ignore = shutil.ignore_patterns("node_modules", "__pycache__", "web" if source == "strata" else "")
            shutil.copytree(found, into, dirs_exist_ok=True, ignore=ignore)
        else:
            if target.endswith("/"):
                into.mkdir(parents=True, exist_ok=True)
            shutil.copy(found, into / found.name if into.is_dir() else into)


@contextlib.contextmanager
def mounted(root: Path) -> Iterator[None]:
    """/proc, and the folders that this machine's pip takes packages from."""
    asked = subprocess.run(["pip", "config", "list"], capture_output=True, text=True, check=False).stdout
    found = [Path(path) for path in re.findall(r"(?:file://)?(/[\w./-]+)", asked)]
    folders = {path.parent if path.name == "simple" else path for path in found if path.is_dir()}
    (root / "dev").mkdir(exist_ok=True)
    mounts = [("/proc", root / "proc"), ("/dev", root / "dev")]
    mounts += [(str(path), root / str(path).lstrip("/")) for path in sorted(folders)]
    done: list[Path] = []
    try:
        for source, target in mounts:
            target.mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "--bind", source, str(target)], check=True)
            done.append(target)
        yield
    finally:
        for target in reversed(done):
            subprocess.run(["umount", "-l", str(target)], check=True)


def build(base: Path, folder: Path, stack: contextlib.ExitStack) -> Stage:
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    for word, rest in instructions((ROOT / "Dockerfile").read_text()):
        sys.stdout.write(f"image: {word} {rest[:100]}\n")
        sys.stdout.flush()
        if word == "FROM":
            stage = begin(base, folder, rest)
            stages[stage.name] = stage
            stack.enter_context(mounted(stage.root))
            continue
        assert stage is not None, "a Dockerfile begins with FROM"
        match word:
            case "WORKDIR":
                stage.workdir = rest
                (stage.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "COPY":
                copy(stage, stages, rest)
            case "RUN":
                stage.run(rest)
            case "ARG" | "ENV":
                stage.env |= dict(pair.split("=", 1) for pair in shlex.split(rest))
            case "USER":
                stage.user = rest
            case "ENTRYPOINT":
                stage.entrypoint = json.loads(rest)
            case "EXPOSE" | "HEALTHCHECK" | "CMD":
                pass
            case _:
                raise Failed(f"{word} is not rehearsed: teach scripts/image.py")
    assert stage is not None
    return stage


def check_runtime(stage: Stage) -> None:
    """The last stage starts as its user, serves its page and its health, and has neither root nor Node."""
    stage.run('test "$(id -u)" = 10001; ! command -v node; strata --version')
    flags = "up --no-agent --grpc-port 0 --http-port 0 --telemetry-port 0"
    argv, environment = stage.call(f"exec {shlex.join(stage.entrypoint)} {flags}")
    process = subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL)
    try:
        endpoints = stage.root / "data" / "endpoints.json"
        deadline = time.monotonic() + START_DEADLINE_S
        while not endpoints.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed("strata up did not come up in the image")
            time.sleep(0.1)
        http = json.loads(endpoints.read_text())["http"]
        for path, wanted in (("/health", b"ok"), ("/", b"<div id=")):
            with urllib.request.urlopen(f"{http}{path}", timeout=30) as answer:  # noqa: S310  # our own http
                if wanted not in answer.read():
                    raise Failed(f"{path} does not answer as it should")
    finally:
        process.terminate()
        process.wait(60)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, help="a Debian made by debootstrap earlier")
    options = parser.parse_args()
    if os.geteuid() != 0 or (options.base is None and shutil.which("debootstrap") is None):
        sys.stderr.write("image: run it as root, with debootstrap installed (apt-get install debootstrap)\n")
        return 1
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="strata-image-") as made, contextlib.ExitStack() as stack:
        folder = Path(made)
        base = stack.enter_context(clean_debian(folder, options.base))
        try:
            check_runtime(build(base, folder, stack))
        except Failed as error:
            sys.stderr.write(f"image: {error}\n")
            return 1
    sys.stdout.write(f"image: every step of the Dockerfile ran, and the result serves its page "
                     f"({time.monotonic() - started:.0f} s)\n")  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
