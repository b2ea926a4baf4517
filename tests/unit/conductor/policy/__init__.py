"""Tests of the trained planner."""
