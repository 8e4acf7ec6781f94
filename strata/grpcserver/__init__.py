"""A gRPC server of one event loop, for many connections with small messages."""
