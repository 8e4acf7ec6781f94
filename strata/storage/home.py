"""Where tasks keep their checkpoints unless their script names a place, and how hosts know whether they share it."""

import os
import secrets
import socket
from pathlib import Path

from strata.config import Settings, check_storage

__all__ = ["checkpoint_home", "home_identity"]

_MARK = ".home"


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
            _draw(mark)
        return f"{home}#{mark.read_text().strip()}"
    except OSError:
        return f"{home}#{socket.gethostname()}"


def _draw(mark: Path) -> None:
    """Whole, and only by the first of several who come at once."""
    staged = mark.with_name(f"{_MARK}.{secrets.token_hex(8)}")
    staged.write_text(f"{secrets.token_hex(8)}\n")
    try:
        os.link(staged, mark)
    except FileExistsError:
        pass
    finally:
        staged.unlink()
