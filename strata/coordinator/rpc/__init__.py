"""One servicer per proto service: convert the request, call the engine, convert the answer."""
