"""The least that a script in Python with a gRPC client must do: an interpreter, the import, and one answer."""

import sys

import grpc

with grpc.insecure_channel(sys.argv[1]) as channel:
    grpc.channel_ready_future(channel).result(timeout=30)
