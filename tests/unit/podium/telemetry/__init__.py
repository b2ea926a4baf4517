"""Trace context, spans, export, redaction and log lines."""
