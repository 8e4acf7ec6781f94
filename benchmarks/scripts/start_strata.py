"""The five lines of the quickstart: `start_strata.py DATA_DIR [alone]`. The points go to the cluster of that folder;
with `alone` none runs there, and they stay in it. The whole process is the measurement."""

import os
import sys

os.environ["STRATA_DATA_DIR"] = sys.argv[1]
os.environ["STRATA_QUIET"] = "1"

import strata  # the environment comes first, as in a shell

run = strata.init(project="bench", name="first")
for step in range(100):
    run.log({"loss": 1 / (step + 1)}, step=step)
if not run.finish() and len(sys.argv) == 2:
    raise SystemExit("not all points were delivered")
