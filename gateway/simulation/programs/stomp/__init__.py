"""Programs of STOMP clients."""
