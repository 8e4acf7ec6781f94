"""Which ranks of which tasks run where, and how they are started."""
