"""Packs: the specialists of one subject each, with their rules, validators and sample data."""
