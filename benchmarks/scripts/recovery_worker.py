"""examples/train_numpy.py as it is, with the moment of every step noted: `recovery_worker.py NOTES ARGUMENTS…`."""

import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any

from strata.worker.run import Run

_EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "train_numpy.py"


def main() -> None:
    notes = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    progress = Run.progress

    def noted(run: Run, step: int, **values: Any) -> None:
        progress(run, step, **values)
        os.write(notes, f"{time.time():.6f} {run.place.attempt} {step}\n".encode())

    setattr(Run, "progress", noted)  # noqa: B010  # the example must stay as users have it
    sys.argv = [str(_EXAMPLE), *sys.argv[2:]]
    runpy.run_path(str(_EXAMPLE), run_name="__main__")


if __name__ == "__main__":
    main()
