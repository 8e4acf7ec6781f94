"""The wire's end in the observatory: telemetry comes in, the coordinator's state is followed. grpc lives here alone."""
