"""The demo: a small language model that learns to tell stories, on a task of its own, watched from the first step."""
