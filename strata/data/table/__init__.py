"""Rows of data as columns, and the types of their values."""
