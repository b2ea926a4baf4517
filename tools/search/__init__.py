"""Search in documents: words (SQLite FTS5) and meaning (embeddings), fused; every hit names its source."""
