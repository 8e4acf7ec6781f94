"""Parts that run as long as the process: how they start, what they set aside, how they stop."""
