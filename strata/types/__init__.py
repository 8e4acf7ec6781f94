"""Frozen records that every side shares."""
