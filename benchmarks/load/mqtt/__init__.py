"""MQTT 3.1.1 as the load generator speaks it."""
