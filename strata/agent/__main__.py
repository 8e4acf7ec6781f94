"""`python -m strata.agent`: an agent without the CLI's packages, as launchers start it on other hosts."""

import argparse
import logging
import os

from strata.agent.server import Whereabouts, run
from strata.config import load_settings
from strata.errors import StrataError


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m strata.agent", description=__doc__)
    parser.add_argument("--data-dir", required=True, help="%%d becomes this agent's number under Slurm or Ray")
    parser.add_argument("--coordinator", required=True)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--launcher", default="local")
    parser.add_argument("--telemetry")
    parser.add_argument("--leave-after", type=float, help="seconds without ranks or coordinator after which it ends")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    number = os.environ.get("STRATA_AGENT_NUMBER") or os.environ.get("SLURM_PROCID", "0")
    flags = {
        "data_dir": options.data_dir.replace("%d", number),
        "coordinator_addr": options.coordinator,
        "slots": options.slots,
    }
    try:
        where = Whereabouts(launcher=options.launcher, telemetry=options.telemetry, leave_after_s=options.leave_after)
        run(load_settings(flags), where)
    except StrataError as error:
        logging.getLogger("strata.agent").error("%s", error)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
