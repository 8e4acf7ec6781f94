"""Generated gRPC stubs, and the bridge from errors to gRPC statuses and back."""
