"""Federated fine-tuning of site-local agents (its package only, for now)."""
