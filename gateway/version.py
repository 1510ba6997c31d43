"""The version of this gateway, in the one place that packaging, protocols and the command line read."""

VERSION = "0.1.0"

#: The version of RabbitMQ whose protocols and HTTP API this gateway speaks. Clients and tools compare it with those
#: they know.
RABBITMQ_VERSION = "3.10.8"
