"""Pictures from outside, opened safely: `decode` (PNG, JPEG), `pdf` (pages), `quality` (sharp? blank?)."""
