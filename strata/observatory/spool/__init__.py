"""Accepted batches on disk until the store has them."""
