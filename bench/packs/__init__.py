"""Packs for benchmarks only."""
