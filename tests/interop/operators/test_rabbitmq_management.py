"""The answers of the HTTP API beside those of Debian's RabbitMQ: the same fields, and the same refusals."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.error import HTTPError

import pika
import pytest

from tests.interop.gateways import gateway_at
from tests.interop.rabbitmq_server import RabbitServer, running_rabbitmq
from tests.management_client import request
from tests.running import Gateway
from tests.waiting import wait_until

#: Sends a request to one of both: method, path and body; returns status and JSON.
Ask = Callable[..., tuple[int, Any]]

SETUP: Final = [
    ("vhosts/v1", {"description": "d", "tags": "a,b"}),
    ("users/u1", {"password": "u1", "tags": "management"}),
    ("permissions/v1/u1", {"configure": ".*", "write": ".*", "read": ".*"}),
    ("topic-permissions/v1/u1", {"exchange": "amq.topic", "write": "^a", "read": ".*"}),
    ("queues/%2F/classic", {"durable": True, "arguments": {"x-max-length": 10}}),
    ("queues/%2F/quorum", {"durable": True, "arguments": {"x-queue-type": "quorum"}}),
    ("exchanges/%2F/ex", {"type": "topic", "durable": True}),
    ("policies/%2F/p1", {"pattern": "^classic$", "definition": {"max-length": 100}, "apply-to": "queues"}),
    ("operator-policies/%2F/op1", {"pattern": "^classic$", "definition": {"max-length": 50}, "apply-to": "queues"}),
    ("vhost-limits/%2F/max-queues", {"value": 1000}),
    ("user-limits/u1/max-channels", {"value": 100}),
    ("global-parameters/gp", {"value": {"a": 1}}),
    ("parameters/federation-upstream/%2F/up", {"value": {"uri": "amqp://127.0.0.1:1"}}),
]


def answered(send: Callable[[], Any]) -> tuple[int, Any]:
    """Return the status and the JSON of a request; of a success only that it was one."""
    try:
        return 200, send()
    except HTTPError as error:
        content = error.read()
        return error.code, json.loads(content) if content else None


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ask, Ask]]:
    """Run a gateway and a RabbitMQ with the same entities, and a client that publishes and consumes at each."""
    gateway = gateway_at(tmp_path_factory.mktemp("gateway")).start()
    with running_rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as rabbit:
        asks = of_gateway(gateway), of_rabbitmq(rabbit)
        connections = []
        for ask, port in zip(asks, (gateway.addresses["amqp"][1], rabbit.port), strict=True):
            for path, fields in SETUP:
                assert ask("PUT", path, fields)[0] == 200, path
            assert ask("POST", "bindings/%2F/e/ex/q/classic", {"routing_key": "a.*"})[0] == 200
            connections.append(with_traffic(port))
        for ask in asks:
            wait_until(
                lambda ask=ask: "message_stats" in ask("GET", "queues/%2F/classic")[1] and ask("GET", "channels")[1],
                "there are no statistics",
                timeout_s=30,
            )
        yield asks
        for connection in connections:
            connection.close()
    assert gateway.stop() == 0


def of_gateway(gateway: Gateway) -> Ask:
    return lambda method, path, fields=None: answered(lambda: request(gateway, method, path, fields))


def of_rabbitmq(rabbit: RabbitServer) -> Ask:
    return lambda method, path, fields=None: answered(lambda: rabbit.request(method, path, fields))


def with_traffic(port: int) -> Any:
    """Return a connection that has published, fetched and subscribed."""
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, heartbeat=0))
    channel = connection.channel()
    channel.confirm_delivery()
    for _ in range(5):
        channel.basic_publish("ex", "a.b", b"x" * 10, pika.BasicProperties(delivery_mode=2, timestamp=12345))
    channel.basic_get("classic")
    consumer = connection.channel()
    consumer.basic_consume("classic", lambda *delivery: None)
    connection.process_data_events(1)
    return connection


# Fields

PATHS: Final = [
    "overview", "whoami", "cluster-name", "nodes", "extensions", "definitions", "definitions/%2F", "vhosts",
    "vhosts/%2F", "vhosts/%2F/permissions", "vhosts/v1/topic-permissions", "vhosts/%2F/connections",
    "vhosts/%2F/channels", "vhost-limits", "vhost-limits/%2F", "users", "users/u1", "users/without-permissions",
    "users/u1/permissions", "user-limits", "user-limits/u1", "permissions", "permissions/v1/u1", "topic-permissions",
    "topic-permissions/v1/u1", "exchanges", "exchanges/%2F", "exchanges/%2F/ex", "exchanges/%2F/amq.default",
    "exchanges/%2F/ex/bindings/source", "queues", "queues/%2F/classic", "queues/%2F/quorum",
    "queues?page=1&page_size=2&name=c", "queues?disable_stats=true&enable_queue_totals=true",
    "queues?columns=name,message_stats.publish_details.rate", "queues/%2F/classic/bindings", "bindings",
    "bindings/%2F/e/ex/q/classic", "connections", "channels", "consumers", "policies", "policies/%2F/p1",
    "operator-policies", "parameters", "parameters/federation-upstream/%2F/up", "global-parameters", "shovels",
    "federation-links", "aliveness-test/%2F", "health/checks/alarms", "health/checks/virtual-hosts",
    "health/checks/certificate-expiration/1/weeks", "health/checks/node-is-quorum-critical", "feature-flags", "auth",
    "queues/%2F/classic?lengths_age=60&lengths_incr=5&msg_rates_age=60&msg_rates_incr=5",
]  # fmt: skip

#: Fields of RabbitMQ's implementation, which docs/management.md says are left out.
LEFT_OUT: Final = (
    "backing_queue_status", "reductions", "mnesia_", "ra_open_file_metrics", "queue_index_", "metrics_gc_queue_length",
    "gc_bytes_reclaimed", "io_read_avg", "io_read_count", "io_reopen", "io_seek", "io_sync", "io_write_avg",
    "io_write_count", "cowboy_opts", "socket_opts", "internal_purpose", "messages_dlx", "message_bytes_dlx",
    "open_files", "single_active_consumer_ctag", "single_active_consumer_tag", "totals", "type_specific",
    "bridges@localhost", "samples",
    "idle_since",  # comes and goes with the traffic
)  # fmt: skip

#: Tables whose fields belong to their owners.
OPAQUE: Final = ("arguments", "client_properties", "value", "definition")


def names_in(value: Any) -> set[str]:
    """Return the names of all fields in an answer."""
    if isinstance(value, list):
        return set().union(*map(names_in, value))
    if not isinstance(value, dict):
        return set()
    inner = [names_in(each) for name, each in value.items() if name not in OPAQUE and not name.startswith(LEFT_OUT)]
    return set(value).union(*inner)


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_has_the_fields_of_rabbitmq(both: tuple[Ask, Ask], path: str) -> None:
    (status, ours), (their_status, theirs) = (ask("GET", path) for ask in both)
    assert (status, type(ours)) == (their_status, type(theirs))
    missing = names_in(theirs) - names_in(ours)
    assert sorted(name for name in missing if not name.startswith(LEFT_OUT)) == []


# Refusals

PUBLISH: Final = {"properties": {}, "routing_key": "classic", "payload": "x", "payload_encoding": "string"}
FETCH: Final = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
REFUSALS: Final = [
    ("GET", "queues/nov", None), ("GET", "queues/%2F/none", None), ("DELETE", "queues/%2F/none", None),
    ("GET", "vhosts/none", None), ("DELETE", "vhosts/none", None), ("PUT", "queues/nov/q", {}),
    ("PUT", "queues/%2F/classic", {"durable": False}),
    ("PUT", "queues/%2F/classic", {"durable": True, "arguments": {"x-max-length": 11}}),
    ("PUT", "queues/%2F/bad", {"arguments": {"x-max-length": -1}}),
    ("PUT", "queues/%2F/bad", {"arguments": {"x-message-ttl": "abc"}}), ("PUT", "queues/%2F/bad", {"durable": "foo"}),
    ("PUT", "queues/%2F/amq.foo", {}), ("PUT", "queues/%2F/bad", {"arguments": {"x-queue-type": "foo"}}),
    ("PUT", "exchanges/%2F/e1", {"type": "nope"}),
    ("PUT", "exchanges/%2F/ex", {"type": "direct"}), ("PUT", "exchanges/%2F/amq.e", {"type": "direct"}),
    ("DELETE", "exchanges/%2F/amq.direct", None), ("DELETE", "exchanges/%2F/ex?if-unused=true", None),
    ("PUT", "exchanges/nov/e", {"type": "direct"}), ("DELETE", "exchanges/%2F/amq.default", None),
    ("POST", "bindings/%2F/e/none/q/classic", {"routing_key": "a"}),
    ("POST", "bindings/%2F/e/ex/q/none", {"routing_key": "a"}),
    ("POST", "bindings/%2F/e/amq.default/q/classic", {"routing_key": "a"}),
    ("DELETE", "bindings/%2F/e/ex/q/classic/nokey", None),
    ("POST", "exchanges/%2F/none/publish", PUBLISH),
    ("POST", "exchanges/%2F/amq.default/publish", PUBLISH | {"payload_encoding": "foo"}),
    ("POST", "exchanges/%2F/amq.default/publish", PUBLISH | {"payload_encoding": "base64"}),
    ("POST", "exchanges/%2F/amq.default/publish", PUBLISH | {"properties": {"user_id": "other"}}),
    ("POST", "queues/%2F/none/get", FETCH), ("POST", "queues/%2F/quorum/get", {}),
    ("POST", "queues/%2F/quorum/get", FETCH | {"encoding": "foo"}), ("DELETE", "queues/%2F/none/contents", None),
    ("POST", "queues/%2F/classic/actions", {"action": "foo"}), ("POST", "queues/%2F/classic/actions", {}),
    ("PUT", "policies/%2F/pp", {}), ("PUT", "policies/%2F/pp", {"pattern": "a", "definition": {}}),
    ("PUT", "policies/%2F/pp", {"pattern": "a", "definition": {"max-length": -1}}),
    ("DELETE", "policies/%2F/none", None),
    ("PUT", "policies/nov/pp", {"pattern": "a", "definition": {"max-length": 1}}),
    ("PUT", "parameters/foo/%2F/x", {"value": 1}), ("PUT", "parameters/shovel/%2F/x", {}),
    ("PUT", "global-parameters/a", {}), ("GET", "global-parameters/none", None),
    ("PUT", "users/u2", {}), ("PUT", "users/u2", {"password": "a", "password_hash": "", "tags": ""}),
    ("PUT", "users/u2", {"password_hash": "!!", "tags": "a"}), ("DELETE", "users/none", None),
    ("GET", "users/none/permissions", None), ("PUT", "permissions/%2F/u1", {}),
    ("PUT", "permissions/%2F/none", {"configure": "", "write": "", "read": ""}),
    ("PUT", "permissions/nov/u1", {"configure": "", "write": "", "read": ""}),
    ("PUT", "topic-permissions/%2F/u1", {"write": "", "read": ""}),
    ("PUT", "vhost-limits/%2F/foo", {"value": 1}), ("PUT", "vhost-limits/%2F/max-queues", {"value": "x"}),
    ("PUT", "vhost-limits/nov/max-queues", {"value": 1}), ("PUT", "user-limits/none/max-channels", {"value": 1}),
    ("PUT", "vhosts/v2", {"tracing": "foo"}), ("GET", "queues?page=a", None), ("GET", "queues?page=100", None),
    ("GET", "queues?page=1&page_size=501", None), ("GET", "queues?lengths_age=60&lengths_incr=0", None),
    ("GET", "connections/none", None), ("GET", "channels/none", None), ("GET", "health/checks/port-listener/a", None),
    ("GET", "aliveness-test/nov", None), ("PUT", "cluster-name", {}), ("PUT", "feature-flags/none/enable", {}),
    ("POST", "definitions/nov", {}), ("GET", "nope", None), ("PATCH", "queues/%2F/x", None),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "fields"), REFUSALS)
def test_a_refusal_is_that_of_rabbitmq(both: tuple[Ask, Ask], method: str, path: str, fields: object) -> None:
    ours, theirs = (ask(method, path, fields) for ask in both)
    assert ours == theirs
    assert ours[0] >= 400
