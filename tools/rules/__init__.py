"""Rules written in CEL (Common Expression Language): small, safe expressions over named values."""
