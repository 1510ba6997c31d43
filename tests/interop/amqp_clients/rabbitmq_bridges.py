"""A virtual host of RabbitMQ with consistent-hash exchanges, shovels and federation, for exports.

``tests/management/fixtures/rabbitmq-3.10.8-bridges*.json`` are exports of it.
"""

from typing import Any

from tests.interop.rabbitmq_server import RabbitServer

_NOWHERE = "amqp://127.0.0.1:1"
_ALWAYS = {"configure": ".*", "write": ".*", "read": ".*"}

SHOVELS: dict[str, Any] = {
    "to-archive": {
        "src-protocol": "amqp091",
        "src-uri": "amqp:///shop",
        "src-queue": "part-0",
        "src-prefetch-count": 500,
        "src-delete-after": "never",
        "dest-protocol": "amqp091",
        "dest-uri": [_NOWHERE, "amqp://127.0.0.1:2/archive"],
        "dest-queue": "archive",
        "dest-add-forward-headers": True,
        "dest-add-timestamp-header": True,
        "dest-publish-properties": {"delivery_mode": 2},
        "ack-mode": "on-confirm",
        "reconnect-delay": 3600,
    },
    "from-exchange": {
        "src-uri": _NOWHERE,
        "src-exchange": "amq.topic",
        "src-exchange-key": "a.#",
        "dest-uri": "amqp:///shop",
        "dest-exchange": "fed.orders",
        "dest-exchange-key": "new",
        "ack-mode": "on-publish",
        "add-forward-headers": True,
        "prefetch-count": 10,
        "delete-after": "never",
        "reconnect-delay": 3600,
    },
}

UPSTREAMS: dict[str, Any] = {
    "berlin": {
        "uri": _NOWHERE,
        "exchange": "orders",
        "expires": 3_600_000,
        "message-ttl": 60_000,
        "max-hops": 2,
        "prefetch-count": 100,
        "reconnect-delay": 3600,
        "ack-mode": "on-confirm",
        "trust-user-id": False,
    },
    "rome": {"uri": [_NOWHERE, "amqp://127.0.0.1:2"], "queue": "jobs", "reconnect-delay": 3600},
}

POLICIES: dict[str, Any] = {
    "fed-exchanges": {"definition": {"federation-upstream-set": "all"}, "apply-to": "exchanges", "priority": 1},
    "fed-queues": {
        "definition": {"federation-upstream": "rome", "max-length": 1000},
        "apply-to": "queues",
        "priority": 2,
    },
}

#: Type and arguments by name.
EXCHANGES: dict[str, tuple[str, dict[str, str]]] = {
    "hashed": ("x-consistent-hash", {}),
    "hashed-header": ("x-consistent-hash", {"hash-header": "customer"}),
    "hashed-property": ("x-consistent-hash", {"hash-property": "message_id"}),
    "fed.orders": ("topic", {}),
}


def define_bridges(server: RabbitServer) -> None:
    """Define the virtual host ``shop``."""
    server.request("PUT", "vhosts/shop", {})
    server.request("PUT", "permissions/shop/guest", _ALWAYS)
    for name, (type_name, arguments) in EXCHANGES.items():
        fields = {"type": type_name, "durable": True, "arguments": arguments}
        server.request("PUT", f"exchanges/shop/{name}", fields)
    for number in range(4):
        server.request("PUT", f"queues/shop/part-{number}", {"durable": True})
        server.request("POST", f"bindings/shop/e/hashed/q/part-{number}", {"routing_key": str(number + 1)})
    server.request("PUT", "queues/shop/fed.jobs", {"durable": True})
    for component, values in (("shovel", SHOVELS), ("federation-upstream", UPSTREAMS)):
        for name, value in values.items():
            server.request("PUT", f"parameters/{component}/shop/{name}", {"value": value})
    for name, policy in POLICIES.items():
        server.request("PUT", f"policies/shop/{name}", {"pattern": "^fed\\.", **policy})


def define_upstream_set(server: RabbitServer) -> None:
    """Define a set of upstreams there. With one, ``rabbitmqctl export_definitions`` of 3.10.8 fails; HTTP works."""
    members = [{"upstream": "berlin", "max-hops": 1}, {"upstream": "rome"}]
    server.request("PUT", "parameters/federation-upstream-set/shop/both", {"value": members})
