"""A batch of points as columns, checked where it comes in."""
