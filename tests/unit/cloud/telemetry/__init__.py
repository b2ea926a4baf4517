"""Metrics and the page that serves them."""
