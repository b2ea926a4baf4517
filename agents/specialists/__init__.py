"""The atomic agents: small specialists that every pack builds on. Each module is one manifest's callable."""
