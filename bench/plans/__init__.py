"""Kept requests that measure the planner: written before any training, never trained on."""
