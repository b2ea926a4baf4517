"""Sentence embeddings: texts in, unit vectors out, one space per model and never two compared with each other."""
