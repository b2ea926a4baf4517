"""Traces, logs and metrics of real processes: one trace through all of them, and nothing personal in any."""
