"""Benchmarks: programs that print ratios against a peer in the same run."""
