"""An MQTT client for 3.1.1 and 5.0, and its codec."""
