"""Builds strata-engine: the makers' wheel of chDB's light build under a name of ours, which asks for nothing.

A build backend (PEP 517) of the standard library and pip. It compiles nothing and never changes a file of the makers.
"""

import base64
import csv
import fnmatch
import hashlib
import io
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Project", "build_sdist", "build_wheel", "fetch", "prepare_metadata_for_build_wheel"]

_HERE = Path(__file__).resolve().parent
_SOURCES = ("pyproject.toml", "repack.py", "README.md")
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What pyproject.toml says: of our package, and of the one that it is made of."""

    name: str
    version: str
    metadata: str
    makers: str
    hashes: tuple[str, ...]
    licenses: frozenset[str]
    left_out: tuple[str, ...]

    @classmethod
    def read(cls) -> "Project":
        told = tomllib.loads((_HERE / "pyproject.toml").read_text(encoding="utf-8"))
        ours, tool = told["project"], told["tool"]["repack"]
        return cls(
            name=ours["name"],
            version=ours["version"],
            metadata=_metadata(ours, tool["licenses"]),
            makers=tool["makers"],
            hashes=tuple(tool["hashes"]),
            licenses=frozenset(tool["licenses"]),
            left_out=tuple(tool["left-out"]),
        )

    @property
    def stem(self) -> str:
        return f"{self.name.replace('-', '_')}-{self.version}"

    @property
    def info(self) -> str:
        return f"{self.stem}.dist-info"

    @property
    def makers_version(self) -> str:
        return self.version.partition(".post")[0]

    @property
    def makers_info(self) -> str:
        return f"{self.makers.replace('-', '_')}-{self.makers_version}.dist-info"


def build_wheel(
    wheel_directory: str, config_settings: Mapping[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    project = Project.read()
    with tempfile.TemporaryDirectory(prefix="strata-engine-") as folder:
        makers = fetch(project, Path(folder))
        name = "-".join([project.stem, *makers.stem.split("-")[-3:]]) + ".whl"
        try:
            _repack(project, makers, Path(wheel_directory) / name)
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
            raise _give_up(f"the makers' wheel {makers.name} cannot be read: {error}") from None
    return name


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Mapping[str, Any] | None = None) -> str:
    """Without the download: whoever only resolves versions needs no engine."""
    project = Project.read()
    info = Path(metadata_directory) / project.info
    info.mkdir()
    (info / "METADATA").write_text(project.metadata, encoding="utf-8")
    return info.name


def build_sdist(sdist_directory: str, config_settings: Mapping[str, Any] | None = None) -> str:
    """A few kilobytes: an index that has them serves every platform."""
    project = Project.read()
    name = f"{project.stem}.tar.gz"
    with tarfile.open(Path(sdist_directory) / name, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for source in _SOURCES:
            archive.add(_HERE / source, f"{project.stem}/{source}")
        told = project.metadata.encode()
        entry = tarfile.TarInfo(f"{project.stem}/PKG-INFO")
        entry.size = len(told)
        archive.addfile(entry, io.BytesIO(told))
    return name


def fetch(project: Project, folder: Path) -> Path:
    """The makers' wheel for this machine, downloaded into the folder. pip has checked its hash."""
    wanted = folder / "makers.txt"
    hashes = " ".join(f"--hash={one}" for one in project.hashes)
    wanted.write_text(f"{project.makers}=={project.makers_version} {hashes}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-input", "--no-deps"]
    command += ["--only-binary", ":all:", "--require-hashes", "-r", str(wanted), "-d", str(folder)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        raise _give_up(_reason(f"{project.makers} {project.makers_version}", done.stderr))
    return next(folder.glob("*.whl"))


def _reason(makers: str, said: str) -> str:
    """What pip's words mean. It says "No matching distribution" also when it reached nobody."""
    if "DO NOT MATCH THE HASHES" in said:
        return (
            f"the wheel of {makers} that pip was given is not its makers'; see where pip takes it from: pip config list"
        )
    if "is invalid" in said or "invalid wheel" in said:
        return f"the makers' wheel of {makers} cannot be read, as pip says above"
    if "No matching distribution" in said and "Retrying" not in said and "Could not fetch" not in said:
        here = f"{sysconfig.get_platform()}, Python {sys.version_info.major}.{sys.version_info.minor}"
        return (
            f"pip's index has no wheel of {makers} for this machine ({here}); its makers have some for Linux with "
            "glibc on x86-64 and ARM. The extra `lean` and a ClickHouse server do without it"
        )
    return (
        f"pip could not download {makers}, as it says above; try again, or set PIP_INDEX_URL to an index that answers"
    )


def _give_up(reason: str) -> SystemExit:
    """pip shows what a backend writes: one sentence, and no traceback of ours."""
    return SystemExit(f"strata-engine was not built: {reason}.")


def _repack(project: Project, makers: Path, target: Path) -> None:
    record: list[tuple[str, str, int | str]] = []
    with zipfile.ZipFile(makers) as source, zipfile.ZipFile(target, "w") as wheel:
        source.getinfo(f"{project.makers_info}/WHEEL")  # KeyError: it is no wheel of theirs
        for item, name in _kept(project, source):
            digest = hashlib.sha256()
            with source.open(item) as reader, wheel.open(_entry(name, item.external_attr), "w") as writer:
                while piece := reader.read(_PIECE):
                    digest.update(piece)
                    writer.write(piece)
            record.append((name, _hash(digest.digest()), item.file_size))
        told = project.metadata.encode()
        wheel.writestr(_entry(f"{project.info}/METADATA"), told)
        record.append((f"{project.info}/METADATA", _hash(hashlib.sha256(told).digest()), len(told)))
        record.append((f"{project.info}/RECORD", "", ""))
        lines = io.StringIO()
        csv.writer(lines, lineterminator="\n").writerows(record)
        wheel.writestr(_entry(f"{project.info}/RECORD"), lines.getvalue())


def _entry(name: str, attributes: int = 0o100644 << 16) -> zipfile.ZipInfo:
    """Without the time of the build: the same wheel makes the same wheel."""
    entry = zipfile.ZipInfo(name)
    entry.external_attr, entry.compress_type = attributes, zipfile.ZIP_DEFLATED
    return entry


def _kept(project: Project, source: zipfile.ZipFile) -> Iterator[tuple[zipfile.ZipInfo, str]]:
    """Every file that goes over, with its new name: tags and licenses are the makers', other metadata ours."""
    licenses = f"{project.makers_info}/licenses/"
    found = {
        name.removeprefix(licenses) for name in source.namelist() if name.startswith(licenses) and name != licenses
    }
    if found != project.licenses:
        raise _give_up(f"its license files are {sorted(found)}, pyproject.toml names {sorted(project.licenses)}")
    for item in source.infolist():
        name = item.filename.replace(project.makers_info, project.info, 1)
        ours = item.filename.startswith((licenses, f"{project.makers_info}/WHEEL"))
        if item.is_dir() or any(fnmatch.fnmatch(name, pattern) for pattern in project.left_out):
            continue
        if ours or not item.filename.startswith(f"{project.makers_info}/"):
            yield item, name


def _hash(digest: bytes) -> str:
    return f"sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def _metadata(ours: Mapping[str, Any], licenses: list[str]) -> str:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {ours['name']}",
        f"Version: {ours['version']}",
        f"Summary: {ours['description']}",
        f"License-Expression: {ours['license']}",
        *(f"License-File: {name}" for name in licenses),
        f"Requires-Python: {ours['requires-python']}",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join([*lines, "", (_HERE / ours["readme"]).read_text(encoding="utf-8")])
