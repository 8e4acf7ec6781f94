"""Finding runs: a small query language over labels, config and summaries, and the table that it fills."""
