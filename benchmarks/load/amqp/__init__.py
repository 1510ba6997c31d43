"""AMQP 0-9-1 for the load generator."""
