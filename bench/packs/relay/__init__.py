"""A pack of five agents that do nothing: what is left to measure is the runtime."""
