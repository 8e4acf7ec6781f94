"""The data folder: journal, spool, token and logs of one installation, for its owner's eyes only."""

import logging
import os
import re
import stat
from pathlib import Path

from strata.errors import InvalidConfig

__all__ = ["check_data_dir", "is_ours", "nearest_folder", "network_file_system", "open_data_dir", "write_private"]

_log = logging.getLogger(__name__)

_MAX_SHOWN = 300
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "lustre"})
# tests/unit/test_datadir.py finds every name that the code puts into a data folder, and each of them must stand here.
_FOLDERS = frozenset(
    {
        "agent", "checkpoints", "coordinator", "demo", "files", "fleets", "logs", "metrics", "offline", "restored",
        "spool", "tls",
    }
)  # fmt: skip
_FILES = frozenset(
    {
        "agent.json", "alert-deliveries.json", "alert-rules.json", "ca.pem", "coordinator.json", "endpoints.json",
        "observatory.json", "store.lock", "strata.lock", "token",
    }
)  # fmt: skip
_LOGS = frozenset({"agent.log", "coordinator.log", "observatory.log", "strata.log"})  # where people send what it says
_STAGED = re.compile(r"\.(part|[0-9]+)\Z")  # of a file whose writer was killed


def is_ours(name: str) -> bool:
    """Whether an entry of a data folder, by its name, is one that Strata has made."""
    return name in _FOLDERS or name in _LOGS or _STAGED.sub("", name) in _FILES


def open_data_dir(folder: Path) -> None:
    """Creates the folder with mode 0700 if need be. A folder that others may enter is closed to them when it holds
    nothing but our files. Otherwise a warning says so, because it may be a home or a scratch folder that others need.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_mode & _OTHERS:
            _close(folder)
    except OSError as error:
        raise _unusable(folder, error) from None


def check_data_dir(folder: Path) -> None:
    """For those who only read: a folder that is not there is one in which nothing runs. One that cannot even be looked
    for, because its name is too long or its place is closed to this user, is an error."""
    try:
        folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise _unusable(folder, error) from None


def _unusable(folder: Path, error: OSError) -> InvalidConfig:
    return InvalidConfig(
        f"the data folder {str(folder)[:_MAX_SHOWN]} cannot be used: {error.strerror}",
        hint="Give a folder you may write to with --data-dir.",
    )


def _close(folder: Path) -> None:
    found = folder.stat()
    if found.st_uid == os.geteuid() and all(is_ours(entry.name) for entry in folder.iterdir()):
        folder.chmod(0o700)
        return
    text = "other users may enter the data folder %s (mode %o): its files may hold keys; use one of your own, mode 0700"
    _log.warning(text, folder, stat.S_IMODE(found.st_mode))


def nearest_folder(path: Path) -> Path:
    """The path, or what is there of the way to it: whose rights decide whether it can be made."""
    return next((each for each in (path, *path.parents) if os.access(each, os.F_OK)), path)


def network_file_system(folder: Path) -> str:
    """The kind of network file system that holds the folder; empty when it is on a disk of this machine."""
    resolved = os.fspath(folder.resolve())
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    holding = [
        (point, kind) for point, kind in mounts if resolved == point or resolved.startswith(f"{point.rstrip('/')}/")
    ]
    _, kind = max(holding, key=lambda item: len(item[0]), default=("", ""))
    return kind if kind in _NETWORK_FILE_SYSTEMS else ""


def write_private(path: Path, text: str) -> None:
    """A file that only its owner can read, whole or as it was before."""
    staged = path.with_name(f"{path.name}.part")
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    staged.replace(path)
