"""Stand-ins that behave: an in-memory bus, scripted engines, a clock that obeys."""
