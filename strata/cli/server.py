"""Starts one of the three servers: for its command, and as `python -m strata.cli.server NAME --flag value …` for
`strata up`, whose children do without the packages of the command line (about 10 MB in each).
"""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from strata.cli.extras import require_server
from strata.cli.parent import die_with_parent
from strata.cli.prepare import prepare
from strata.config import Settings
from strata.errors import StrataError
from strata.pages import forget_start

__all__ = ["main", "start"]

_RENAMED = {"coordinator": "coordinator_addr", "allow_origin": "allowed_origins"}


def start(name: str, **flags: Any) -> None:
    """Serves until a signal. `flags` are settings; None is one that nobody gave."""
    die_with_parent()
    settings = prepare(**flags)
    serve = _server(name, settings)
    forget_start()
    serve(settings)


def _server(name: str, settings: Settings) -> Callable[[Settings], object]:
    """Each imports what it alone needs."""
    if name == "agent":
        from strata.agent.server import run as serve_agent

        return serve_agent
    require_server(with_engine=settings.ch_host is None)
    if name == "coordinator":
        from strata.coordinator.server import run as serve_coordinator

        return serve_coordinator
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # it starts programs, it never forks; gRPC would warn
    from strata.observatory.server import run as serve_observatory

    return serve_observatory


def main(arguments: Sequence[str]) -> int:
    """The supervisor's own words: every flag has a value, and one that may be repeated is a list."""
    name, *words = arguments
    flags: dict[str, Any] = {}
    for flag, value in zip(words[::2], words[1::2], strict=True):
        field = flag.removeprefix("--").replace("-", "_")
        field = _RENAMED.get(field, field)
        flags[field] = [*flags.get(field, ()), value] if field == "allowed_origins" else value
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # as strata/cli/main.py has it
    try:
        start(name, **flags)
    except StrataError as error:
        sys.stderr.write(f"error: {error.sentence} {error.hint}".rstrip() + "\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
