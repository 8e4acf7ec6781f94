"""The cluster as the observatory follows it."""
