"""Times the import of the modules named as arguments, in a fresh interpreter; `name:all` uses every public name too."""

import importlib
import sys

from benchmarks.measure import report, stopwatch

with stopwatch() as watch:
    for argument in sys.argv[1:]:
        name, _, names = argument.partition(":")
        module = importlib.import_module(name)
        if names == "all":  # a face that loads lazily must not look cheaper than it is
            for public in module.__all__:
                getattr(module, public)
report(watch.values(modules=len(sys.modules)))
