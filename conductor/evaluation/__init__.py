"""Measures plans against the right ones, beside baselines; never plans and never loads a model by itself."""
