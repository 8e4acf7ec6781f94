"""Sums over the ranks of a task, for the built-in trainer and for scripts that have no framework of their own."""
