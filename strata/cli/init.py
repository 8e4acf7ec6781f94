"""`strata init`: writes a first training script, which runs alone and on several workers, and resumes."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from strata.errors import Conflict, InvalidArgument

__all__ = ["add_to"]

_SCRIPT = Path(__file__).with_name("_first_train.py")


def add_to(app: typer.Typer) -> None:
    app.command()(init)


def init(folder: Annotated[Path, typer.Argument(help="Where to write train.py.")] = Path()) -> None:
    """Write a first train.py: it trains a small network, saves checkpoints, and goes on where it was killed."""
    target = folder / "train.py"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8") as file:
            file.write(_SCRIPT.read_text(encoding="utf-8"))
    except FileExistsError:
        raise Conflict(f"{target} is there already", hint="Give another folder: strata init FOLDER.") from None
    except OSError as error:
        raise InvalidArgument(f"{target} cannot be written: {error.strerror}", hint="Give another folder.") from None
    steps = {
        f"python {target}": "run it alone",
        "strata up": "the dashboard, in a second terminal",
        f"strata run --workers 2 {target}": "two ranks: kill -9 one of them, and watch",
    }
    width = max(map(len, steps))
    lines = [f"{target} is written.", "", *(f"  {command:{width}}  {what}" for command, what in steps.items())]
    Console(highlight=False, soft_wrap=True).print("\n".join(lines), markup=False)
