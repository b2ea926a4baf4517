"""Which model files may be loaded, and where they are: `tools.models.pinned`."""
