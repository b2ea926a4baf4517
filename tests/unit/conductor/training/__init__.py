"""Tests of the planner's training."""
