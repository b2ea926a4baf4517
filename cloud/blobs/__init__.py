"""Content-addressed bytes: resumable uploads, who may read what, who refers to it, and what may go."""
