"""Agents on other machines: real hosts in processes of their own, and hosts that misbehave on the wire."""
