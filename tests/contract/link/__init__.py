"""One suite for everybody who uses `podium.link`, run through a proxy that breaks and in network namespaces."""
