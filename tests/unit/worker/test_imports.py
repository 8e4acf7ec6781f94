"""What a rank tells its agent of its imports, and that a spare can do them."""

import json
import os
import subprocess
import sys
from pathlib import Path

from strata.agent.spare import kind_of
from strata.agent.template import Template
from strata.launchers.base import LaunchSpec
from tests.support.waiting import eventually

_SCRIPT = """
import json, os.path, sys
import numpy
import own
import strata.worker.run, strata.data, strata.checkpoint
from strata.worker.imports import importable
print(json.dumps(importable()))
"""


def test_installed_modules_in_order_none_of_the_users_and_a_spare_can_import_them(tmp_path: Path) -> None:
    (tmp_path / "own.py").touch()
    (tmp_path / "script.py").write_text(_SCRIPT)
    command = (sys.executable, "script.py")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    modules = json.loads(done.stdout)
    assert {"numpy", "json", "strata.worker.run", "strata.checkpoint.manager"} <= {*modules}
    assert not {"own", "__main__", "os.path"} & {*modules}
    assert modules.index("numpy") < modules.index("strata.worker.run")
    kind = kind_of(LaunchSpec(argv=command, tag="t", env=dict(os.environ), working_dir=str(tmp_path)))
    assert kind is not None
    template = Template(kind, modules, tmp_path)

    def heard() -> bool:
        template.listen()
        return template.ready or template.spare is not None or bool(template.unfit)

    eventually("its word", heard)
    assert template.unfit == ""  # nothing of ours reads a rank's variables at its import
    template.close()
