"""Trains the `policy` planner: data, stages, export. Needs the extra `train`; no server imports it."""
