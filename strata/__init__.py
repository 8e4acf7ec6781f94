"""Strata: a distributed-training runtime."""

__version__ = "0.1.0"
