"""RabbitMQ's plugins whose features this broker has, as tools look for them in ``enabled_plugins``."""

from typing import Final

from gateway.management.context import ApiContext

#: Plugins whose features are always on.
_ALWAYS: Final = (
    "rabbitmq_federation", "rabbitmq_federation_management", "rabbitmq_management", "rabbitmq_management_agent",
    "rabbitmq_shovel", "rabbitmq_shovel_management", "rabbitmq_stream_management", "rabbitmq_tracing",
    "rabbitmq_web_dispatch",
)  # fmt: skip

#: Plugins by the listener that they open.
_BY_LISTENER: Final = {
    "mqtt": "rabbitmq_mqtt",
    "mqtts": "rabbitmq_mqtt",
    "stomp": "rabbitmq_stomp",
    "stomps": "rabbitmq_stomp",
    "web_mqtt": "rabbitmq_web_mqtt",
    "web_mqtts": "rabbitmq_web_mqtt",
    "web_stomp": "rabbitmq_web_stomp",
    "web_stomps": "rabbitmq_web_stomp",
    "prometheus": "rabbitmq_prometheus",
}

#: Plugins by the exchange type that they offer, in some virtual host.
_BY_EXCHANGE_TYPE: Final = {
    "x-consistent-hash": "rabbitmq_consistent_hash_exchange",
    "x-delayed-message": "rabbitmq_delayed_message_exchange",
    "x-jms-topic": "rabbitmq_jms_topic_exchange",
    "x-modulus-hash": "rabbitmq_sharding",
    "x-random": "rabbitmq_random_exchange",
    "x-recent-history": "rabbitmq_recent_history_exchange",
}


def enabled_plugins(context: ApiContext) -> list[str]:
    """Return the names of the plugins."""
    listeners = context.addresses()
    types = {name for vhost in context.broker.vhost_by_name.values() for name in vhost.exchange_types}
    by_listener = {plugin for name, plugin in _BY_LISTENER.items() if name in listeners}
    by_type = {plugin for name, plugin in _BY_EXCHANGE_TYPE.items() if name in types}
    return sorted({*_ALWAYS, *by_listener, *by_type})
