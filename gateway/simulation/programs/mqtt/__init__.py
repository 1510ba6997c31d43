"""Programs of MQTT clients."""
