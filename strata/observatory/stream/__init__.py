"""The event stream of the pages."""
