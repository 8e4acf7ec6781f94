"""The files of a dataset, wherever they lie, and copies of them on this disk."""
