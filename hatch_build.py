"""Build hook: puts the built dashboard into strata/observatory/web, so that an installed wheel needs no Node.

Node is needed only where the dashboard's sources are: an sdist carries the finished bundle and no sources. An editable
install skips all of it, because the Makefile builds the dashboard itself.
"""

import os
import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DashboardHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        web = Path(self.root) / "strata" / "observatory" / "web"
        script = Path(self.root) / "dashboard" / "build.py"
        try:
            if script.exists():
                runpy.run_path(str(script))["build"](web)
            elif not (web / "index.html").exists():
                raise RuntimeError("neither the built dashboard nor its sources are here")
        except Exception as error:  # whatever went wrong, the answer is the same: say it, and stop only if asked to
            self._give_up(str(error))

    def _give_up(self, reason: str) -> None:
        if os.environ.get("STRATA_REQUIRE_WEB") == "1":
            self.app.abort(f"strata: the dashboard was not built: {reason}")
        self.app.display_warning(f"strata: packed WITHOUT its dashboard (the API still works): {reason}")
