"""STOMP 1.2 as the load generator speaks it."""
