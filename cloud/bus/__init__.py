"""Engines of the bus port (`conductor.bus.EventBus`)."""
