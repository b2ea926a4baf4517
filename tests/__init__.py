"""Tests, by kind: unit, contract, property, golden, integration, e2e."""
