"""A STOMP client for 1.0, 1.1 and 1.2, and its codec."""
