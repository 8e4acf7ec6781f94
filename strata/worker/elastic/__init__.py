"""Training that goes on in the same process when another rank is replaced."""
