"""Where tasks keep their checkpoints unless their script names a place, and how hosts know whether they share it."""

import contextlib
import secrets
import socket
import time
from pathlib import Path

from strata.config import Settings, check_storage

__all__ = ["checkpoint_home", "home_identity", "told_apart"]

_MARK = ".home"
_WRITTEN_S = 1.0


def checkpoint_home(settings: Settings) -> str:
    """A bucket's address, or a folder."""
    check_storage(settings)
    home = settings.checkpoint_bucket.rstrip("/")
    if settings.storage_backend == "s3":
        return home if "://" in home else f"s3://{home}"
    return home or str(settings.data_dir.resolve() / "checkpoints")


def home_identity(home: str) -> str:
    """The same for all who see the same files: a bucket's address; of a folder `path#word`, where the word was drawn
    once and lies in it. A folder that cannot be written is this host's own."""
    if "://" in home:
        return home
    mark = Path(home) / _MARK
    try:
        if not mark.exists():
            mark.parent.mkdir(parents=True, exist_ok=True)
            # Only by the first of several who come at once. No hard link: not every mounted bucket or share has them.
            with contextlib.suppress(FileExistsError), mark.open("x") as file:
                file.write(f"{secrets.token_hex(8)}\n")
        return f"{home}#{_read(mark)}"
    except OSError:
        return f"{home}#{socket.gethostname()}"


def told_apart(hosts: str) -> str:
    """What is wrong with a task over these hosts, which share no home, and what to do."""
    return (
        f"{hosts} keep checkpoints in folders of their own: set STRATA_CHECKPOINT_BUCKET, on every agent, to a folder "
        "that all of them share or to a bucket, or give the script such a path"
    )


def _read(mark: Path) -> str:
    """Who has just made it may not have written it yet; one that stays empty is a word, too."""
    deadline = time.monotonic() + _WRITTEN_S
    while not (word := mark.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return word
