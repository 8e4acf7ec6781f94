"""Detectors: pure watchers that turn points, vitals and events into findings. They never act; the alert book does."""
