"""A folder that a hostile agent's process is given as its own."""
