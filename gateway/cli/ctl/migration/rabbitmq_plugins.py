"""RabbitMQ's plugins: which the gateway has, and what replaces the others."""

from collections.abc import Mapping
from typing import Final

from gateway.cli.ctl.migration.entities import OTHER_HASH
from gateway.cli.ctl.migration.finding import MigrationFinding, MoveVerdict

_BUILT_IN: Final = "always on"
_BACKEND: Final = "a plugin of each virtual host; gateway migrate converts its settings"
_DISCOVERY: Final = "settings name the servers of a cluster (docs/cluster.md)"

_SAME: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            *("rabbitmq_management", "rabbitmq_management_agent", "rabbitmq_web_dispatch", "rabbitmq_shovel"),
            *("rabbitmq_shovel_management", "rabbitmq_federation", "rabbitmq_federation_management"),
            *("rabbitmq_prometheus", "rabbitmq_mqtt", "rabbitmq_web_mqtt", "rabbitmq_stomp", "rabbitmq_web_stomp"),
            *("rabbitmq_tracing", "rabbitmq_stream_management", "rabbitmq_delayed_message_exchange"),
            *("rabbitmq_random_exchange", "rabbitmq_recent_history_exchange", "rabbitmq_jms_topic_exchange"),
            *("rabbitmq_message_deduplication", "rabbitmq_lvc_exchange", "rabbitmq_rtopic_exchange"),
            "rabbitmq_auth_mechanism_ssl",
        ),
        _BUILT_IN,
    ),
    "rabbitmq_event_exchange": "enable event-exchange",
    "rabbitmq_message_timestamp": "enable interceptor-timestamp",
    "rabbitmq_routing_node_stamp": "enable interceptor-routing-node",
    **dict.fromkeys(("amqp_client", "cowboy", "cowlib", "ranch", "accept", "prometheus", "amqp10_common"), "a library"),
}

_DIFFERS: Final[Mapping[str, str]] = {
    "rabbitmq_consistent_hash_exchange": OTHER_HASH,
    "rabbitmq_sharding": "the exchange type x-modulus-hash; queues of shards are declared by the application",
    **dict.fromkeys(
        (
            *("rabbitmq_auth_backend_ldap", "rabbitmq_auth_backend_http", "rabbitmq_auth_backend_oauth2"),
            "rabbitmq_auth_backend_cache",
        ),
        _BACKEND,
    ),
    "rabbitmq_trust_store": "the setting tls.ca",
    "rabbitmq_top": "gatewayctl observe",
}

_MISSING: Final[Mapping[str, str]] = {
    "rabbitmq_amqp1_0": "AMQP 1.0: clients use AMQP 0-9-1, MQTT 5 or STOMP",
    "rabbitmq_stream": "the stream protocol: clients read streams over AMQP or STOMP",
    "rabbitmq_web_mqtt_examples": "examples of RabbitMQ",
    "rabbitmq_web_stomp_examples": "examples of RabbitMQ",
}


def plugin_finding(name: str) -> MigrationFinding:
    """Return the finding about an enabled plugin."""
    if name.startswith("rabbitmq_peer_discovery"):
        return MigrationFinding("plugin", name, MoveVerdict.DIFFERS, _DISCOVERY)
    for notes, verdict in ((_SAME, MoveVerdict.SAME), (_DIFFERS, MoveVerdict.DIFFERS), (_MISSING, MoveVerdict.MISSING)):
        if name in notes:
            return MigrationFinding("plugin", name, verdict, notes[name])
    note = "no such plugin; docs/plugins shows how to write one in Python"
    return MigrationFinding("plugin", name, MoveVerdict.MISSING, note)
