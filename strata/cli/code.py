"""What a task runs, and where: the script with its own arguments, in the folder of the command or in code that goes
along with the task."""

import difflib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from strata.client.channel import Channel
from strata.client.code import CodeClient
from strata.errors import InvalidArgument
from strata.launchers.code import Code, pack_code

__all__ = ["Program", "find_program", "send_code"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The command line of the ranks and their working folder, which is a path inside of the code, if there is some."""

    entrypoint: tuple[str, ...]
    working_dir: str
    code: Code | None = None


def find_program(script: str, arguments: list[str], sync: Path | None) -> Program:
    """A missing script is refused here: a worker on another host would say so much later. With `sync` that folder goes
    along, and the script is found in it on every host."""
    here = Path.cwd()
    if sync is None:
        return Program(entrypoint=(*_program(script), *arguments), working_dir=str(here))
    root = sync.resolve()
    inside = here if here.is_relative_to(root) else root
    return Program(
        entrypoint=(*_program(script, root, inside), *arguments),
        working_dir=inside.relative_to(root).as_posix(),
        code=pack_code(root),
    )


def send_code(channel: Channel, code: Code) -> str:
    """Returns what was sent, for people."""
    sent = CodeClient(channel).put(code.digest, code.data)
    size = f"{code.num_files} files, {len(code.data) / 1e6:.1f} MB"
    return f"code {code.digest[:12]} ({size}) {'goes along' if sent else 'is there already'}"


def _program(script: str, root: Path | None = None, inside: Path | None = None) -> tuple[str, ...]:
    path = Path(script)
    if path.suffix != ".py":
        program = shutil.which(script)
        if program is None:
            raise InvalidArgument(f"there is no program {script}", hint="Give a .py file, or a program on the PATH.")
        return (program,)
    if not path.is_file():
        raise InvalidArgument(f"there is no script {script}", hint=_near(path))
    if root is None or inside is None:
        return ("python", str(path.resolve()))
    if not path.resolve().is_relative_to(root):
        raise InvalidArgument(f"{script} is not in {root}, the folder that goes along", hint="Name one that holds it.")
    return ("python", os.path.relpath(path.resolve(), inside))


def _near(missing: Path) -> str:
    """What to do about a script that is not there."""
    there = [path.name for path in missing.parent.glob("*.py")] if missing.parent.is_dir() else []
    alike = difflib.get_close_matches(missing.name, there, n=1)
    return (
        f"Did you mean {missing.with_name(alike[0])}?" if alike else f"It was looked for in {missing.parent.resolve()}."
    )
