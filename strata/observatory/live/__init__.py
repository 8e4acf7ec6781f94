"""What pages see now: series, runs and their newest points, in memory."""
