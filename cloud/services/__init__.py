"""The gRPC services of `podium.v1`, one module each."""
