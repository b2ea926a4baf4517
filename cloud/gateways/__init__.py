"""Podium as others know agents and tools: an MCP server and an A2A agent in front of TaskService.

A gateway is a process of its own and an ordinary client of a server. It has no rights of its own over HTTP: what a
caller may do is decided by the server, from the token that the caller brought.
"""
