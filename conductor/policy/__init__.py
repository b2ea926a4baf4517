"""The `policy` planner: a small trained model that plans over the texts and schemas of any agents."""
