"""The agent: one process per host, which starts workers and watches them."""
