"""STOMP 1.2 for the load generator."""
