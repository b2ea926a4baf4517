"""Who calls, and what they may do: principals, the table of roles, tokens, quotas and whose a task is."""
