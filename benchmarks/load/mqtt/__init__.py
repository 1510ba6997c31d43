"""MQTT 3.1.1 for the load generator."""
