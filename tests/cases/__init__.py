"""Bad input, made at test time: broken files, drawn pages, a pack of agents that misbehave."""
