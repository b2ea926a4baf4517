"""What the server tells of itself: spans of its work, metrics, and where both go."""
