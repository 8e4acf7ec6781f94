"""Commands in, events out, made durable, and everybody who waits is told."""
