"""The only files that import a training framework."""
