"""Conversion of the configuration of RabbitMQ and Mosquitto to that of the gateway."""
