"""The five independent checks of an invoice; each says what it found and what it looked at."""
