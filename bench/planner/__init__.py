"""Runs the trained planner over all it is judged by and writes docs/results.md: `python -m bench.planner`."""
