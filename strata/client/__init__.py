"""Typed calls over gRPC: records in, records out."""
