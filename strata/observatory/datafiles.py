"""Looks into data files for the dashboard: counts for a registration, samples for a preview. In a short-lived child
process, because scanning a CSV is CPU work that must not run beside the live view.
"""

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import Any

from strata.error_codes import rebuild_error
from strata.errors import DataError, DeadlineExceeded, StrataError

__all__ = ["DataFiles", "count_files", "preview_files"]

_DEADLINE_S = 120.0


@dataclass(frozen=True, slots=True)
class DataFiles:
    """What a dataset's files hold."""

    format: str
    total_samples: int
    files: tuple[tuple[str, int], ...]


async def count_files(path: str, format_name: str) -> DataFiles:
    """Reads footers or scans, whatever the format needs. Raises DataError that names the file."""
    found = await _ask({"do": "count", "path": path, "format": format_name})
    return DataFiles(found["format"], found["total_samples"], tuple((name, count) for name, count in found["files"]))


async def preview_files(path: str, format_name: str, *, count: int, epoch: int, seed: int) -> dict[str, Any]:
    """The first samples of an epoch in training order, made small: strata.data.Preview as a dict."""
    return await _ask({"do": "peek", "path": path, "format": format_name, "count": count, "epoch": epoch, "seed": seed})


async def _ask(request: dict[str, Any]) -> dict[str, Any]:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "strata.observatory.datafiles",
        json.dumps(request),  # not by a pipe: writing to one that its loop has closed already raises
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_DEADLINE_S):
            out, err = await child.communicate()
    except TimeoutError:
        raise DeadlineExceeded(f"{request['path']} was not read within {_DEADLINE_S:.0f} s") from None
    finally:
        if child.returncode is None:  # too slow, or who asked has gone
            child.kill()
    if child.returncode != 0:
        raise DataError(f"{request['path']} cannot be read: {err.decode(errors='replace').strip()[-300:]}")
    answer: dict[str, Any] = json.loads(out)
    if "error" in answer:
        raise _rebuilt(answer["error"])
    return answer


def _rebuilt(error: dict[str, str]) -> StrataError:
    rebuilt = rebuild_error(error["code"], error["message"], hint=error["hint"])
    return rebuilt or DataError(error["message"], hint=error["hint"])


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    from strata.data import build_manifest, peek

    if request["do"] == "peek":
        path, wanted = request["path"], request["format"] or None
        found = peek(path, request["count"], request["epoch"], format=wanted, seed=request["seed"])
        return found.to_dict()
    manifest = build_manifest(request["path"], request["format"] or None)
    files = [[ref.uri, index.num_rows] for ref, index in zip(manifest.files, manifest.indexes, strict=True)]
    return {"format": manifest.format, "total_samples": manifest.num_samples, "files": files}


def _main() -> None:
    try:
        answer = _answer(json.loads(sys.argv[1]))
    except StrataError as error:
        answer = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    _main()
