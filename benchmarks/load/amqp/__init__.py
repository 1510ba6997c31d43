"""AMQP 0-9-1 as the load generator speaks it."""
