"""The pure state machine: a command and the time in, events out."""
