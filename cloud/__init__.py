"""The conductor service: composition root, gRPC services, embedded bus, device hub."""
