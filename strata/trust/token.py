"""The cluster's token: made at the first start, readable by its owner alone, found by CLI, agents and SDK."""

import os
import secrets
from pathlib import Path

from strata.config import Settings
from strata.errors import InvalidConfig

__all__ = ["ensure_token", "read_token"]


def read_token(settings: Settings) -> str | None:
    """The token of this installation, or None when there is none."""
    if settings.token is not None:
        return settings.token.get_secret_value()
    file = settings.data_dir / "token"
    try:
        return file.read_text().strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        raise InvalidConfig(f"{file} cannot be read", hint="It belongs to whoever ran `strata up` first.") from None


def ensure_token(settings: Settings) -> str:
    """The token, made now if there is none. Two processes that start together agree on one."""
    known = read_token(settings)
    if known is not None:
        return known
    file = settings.data_dir / "token"
    try:
        _create(file, secrets.token_urlsafe(32))
    except OSError as error:
        raise InvalidConfig(
            f"the data folder {settings.data_dir} cannot be used: {error.strerror}",
            hint="Give a folder you may write to with --data-dir.",
        ) from None
    token = read_token(settings)
    if token is None:
        raise InvalidConfig(f"{file} is empty", hint="Remove it to have a new token made, or write one into it.")
    return token


def _create(file: Path, token: str) -> None:
    """Creates the token file in one step: it is written aside, then linked into place unless one exists."""
    file.parent.mkdir(parents=True, exist_ok=True)
    staged = file.with_name(f"{file.name}.{secrets.token_hex(4)}")  # not the pid: containers give it again
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as whole:
            whole.write(f"{token}\n".encode())
        file.hardlink_to(staged)
    except FileExistsError:
        pass  # another process was first: its token is the one
    finally:
        staged.unlink()
