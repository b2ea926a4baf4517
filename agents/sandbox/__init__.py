"""Runs one foreign agent in a process tree of its own, with limits that hold.

Everything here is standard library only and is loaded by the small processes themselves: the warden (trusted, one
per running agent) and, forked from it, the agent's own process. The server speaks to a warden through
`agents.engines.process`.
"""
