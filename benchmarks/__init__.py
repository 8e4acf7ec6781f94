"""Benchmarks side by side with peers: every number is a ratio inside one run. Start: `python -m benchmarks --list`."""
