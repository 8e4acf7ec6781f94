"""Samples of datasets for the data page."""
