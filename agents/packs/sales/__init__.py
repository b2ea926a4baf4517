"""Sales: a sample database of orders, what it means, and how its questions are answered."""
