"""The cluster as everybody may see it: its events, its records, and the one rule that makes records of events."""
