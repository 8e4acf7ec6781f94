"""`python -m strata.agent`: an agent without the CLI's packages, as launchers start it on other hosts."""

import argparse
import logging
import os
from pathlib import Path

from strata.agent.server import Whereabouts, run
from strata.config import load_settings
from strata.datadir import open_data_dir
from strata.errors import StrataError
from strata.launchers.base import SENT_AWAY


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m strata.agent", description=__doc__)
    parser.add_argument("--data-dir", required=True, help="%%d becomes this agent's number under Slurm or Ray")
    parser.add_argument("--coordinator", required=True)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--launcher", default="local")
    parser.add_argument("--telemetry")
    parser.add_argument("--task", default="", help="the one task that it is for: it ends when that is over")
    parser.add_argument("--leave-after", type=float, help="seconds without ranks or coordinator after which it ends")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    number = os.environ.get("STRATA_AGENT_NUMBER") or os.environ.get("SLURM_PROCID", "0")
    folder = Path(options.data_dir.replace("%d", number))
    flags = {"data_dir": folder, "coordinator_addr": options.coordinator, "slots": options.slots}
    try:
        flags["ca_file"] = _keep_ca(folder)
        where = Whereabouts(
            launcher=options.launcher,
            telemetry=options.telemetry,
            leave_after_s=options.leave_after,
            task_id=options.task,
        )
        sent_away = run(load_settings(flags), where)
    except StrataError as error:
        logging.getLogger("strata.agent").error("%s", error)
        raise SystemExit(1) from None
    raise SystemExit(SENT_AWAY if sent_away else 0)


def _keep_ca(folder: Path) -> Path | None:
    """The CA that a launcher gave along in the environment, as a file: hosts need no folder in common for it."""
    given = os.environ.pop("STRATA_CA", "")
    if not given:
        return None
    open_data_dir(folder)
    (folder / "ca.pem").write_text(given)
    return folder / "ca.pem"


if __name__ == "__main__":
    main()
