"""Agents of others, and Podium as an agent of others: real processes, the SDKs' own servers and clients."""
