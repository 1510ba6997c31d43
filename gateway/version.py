"""The version of this gateway, the single source for packaging, protocols and the command line."""

VERSION = "0.1.0"

#: The version of RabbitMQ whose protocols and HTTP API this gateway implements. Clients and tools compare it with the
#: versions they support.
RABBITMQ_VERSION = "3.10.8"
