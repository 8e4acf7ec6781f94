"""The training loop that resumes: `strata.training`."""
