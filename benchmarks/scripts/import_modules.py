"""Times the import of the modules named on the command line, in a fresh interpreter."""

import importlib
import sys

from benchmarks.measure import report, stopwatch

with stopwatch() as watch:
    for name in sys.argv[1:]:
        importlib.import_module(name)
report(watch.values(modules=len(sys.modules)))
