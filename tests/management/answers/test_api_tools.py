"""The requests of existing tools, as their sources send them, and the fields that they read."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from tests.management.console import Console

RATED = (
    "publish publish_details.rate confirm deliver_get deliver_get_details.rate get get_no_ack ack redeliver "
    "return_unroutable"
)


@dataclass(frozen=True)
class Ask:
    """One request of a tool; ``fields`` are those that it reads of the answer, or of its first entry."""

    method: str
    path: str
    body: Any = None
    statuses: tuple[int, ...] = (200,)
    fields: str = ""


DONE = (201, 204)
GONE = (204, 404)

#: The Terraform provider's client (rabbit-hole), a resource of each kind from creation to deletion.
RABBIT_HOLE = [
    Ask("GET", "/overview", fields="management_version rabbitmq_version cluster_name node object_totals queue_totals"),
    Ask("GET", "/whoami", fields="name tags"),
    Ask("PUT", "/vhosts/tf", {"description": "d", "tags": "a,b", "default_queue_type": "quorum"}, DONE),
    Ask("GET", "/vhosts/tf", fields="name description tags default_queue_type tracing cluster_state"),
    Ask("PUT", "/users/tf", {"password": "p", "tags": "management"}, DONE),
    Ask("GET", "/users/tf", fields="name password_hash hashing_algorithm tags"),
    Ask("PUT", "/users/tf", {"password": "q", "tags": ["management", "monitoring"]}, DONE),
    Ask("PUT", "/permissions/tf/tf", {"configure": ".*", "write": ".*", "read": ".*"}, DONE),
    Ask("GET", "/permissions/tf/tf", fields="user vhost configure write read"),
    Ask("PUT", "/topic-permissions/tf/tf", {"exchange": "amq.topic", "write": ".*", "read": ".*"}, DONE),
    Ask("GET", "/topic-permissions/tf/tf", fields="user vhost exchange write read"),
    Ask("DELETE", "/topic-permissions/tf/tf/amq.topic", None, (204,)),
    Ask("PUT", "/vhost-limits/tf/max-connections", {"value": 5}, (204,)),
    Ask("GET", "/vhost-limits/tf", fields="vhost value"),
    Ask("DELETE", "/vhost-limits/tf/max-connections", None, (204,)),
    Ask("PUT", "/user-limits/tf/max-channels", {"value": 5}, (204,)),
    Ask("GET", "/user-limits/tf", fields="user value"),
    Ask("DELETE", "/user-limits/tf/max-channels", None, (204,)),
    Ask("PUT", "/exchanges/tf/x", {"type": "topic", "durable": True, "auto_delete": False, "arguments": {}}, DONE),
    Ask("GET", "/exchanges/tf/x", fields="name vhost type durable auto_delete internal arguments"),
    Ask("PUT", "/queues/tf/q", {"durable": True, "auto_delete": False, "arguments": {"x-queue-type": "quorum"}}, DONE),
    Ask("GET", "/queues/tf/q", fields="name vhost type durable auto_delete arguments node leader members online"),
    Ask("POST", "/bindings/tf/e/x/q/q", {"routing_key": "a.#", "arguments": {}}, (201,)),
    Ask("GET", "/queues/tf/q/bindings", fields="source vhost destination destination_type routing_key properties_key"),
    Ask("GET", "/exchanges/tf/x/bindings/source", fields="source destination routing_key properties_key"),
    Ask("GET", "/bindings/tf/e/x/q/q", fields="properties_key"),
    Ask("GET", "/bindings/tf/e/x/q/q/a.%23", fields="properties_key"),
    Ask("DELETE", "/bindings/tf/e/x/q/q/a.%23", None, (204,)),
    Ask("PUT", "/policies/tf/p",
        {"pattern": ".*", "definition": {"max-length": 5}, "priority": 1, "apply-to": "queues"}, DONE),
    Ask("GET", "/policies/tf/p", fields="name vhost pattern definition priority apply-to"),
    Ask("DELETE", "/policies/tf/p", None, (204,)),
    Ask("PUT", "/operator-policies/tf/p",
        {"pattern": ".*", "definition": {"max-length": 5}, "apply-to": "queues"}, DONE),
    Ask("GET", "/operator-policies/tf/p", fields="name vhost pattern definition"),
    Ask("DELETE", "/operator-policies/tf/p", None, (204,)),
    Ask("PUT", "/parameters/federation-upstream/tf/up",
        {"value": {"uri": "amqp://other", "ack-mode": "on-confirm", "max-hops": 1}}, DONE),
    Ask("GET", "/parameters/federation-upstream/tf/up", fields="component vhost name value.uri value.ack-mode"),
    Ask("DELETE", "/parameters/federation-upstream/tf/up", None, (204,)),
    Ask("PUT", "/parameters/shovel/tf/s",
        {"value": {"src-protocol": "amqp091", "src-uri": "amqp:///tf", "src-queue": "q", "dest-protocol": "amqp091",
                   "dest-uri": "amqp:///tf", "dest-queue": "r", "add-forward-headers": False}}, DONE),
    Ask("GET", "/parameters/shovel/tf/s", fields="value.src-uri value.dest-queue"),
    Ask("DELETE", "/parameters/shovel/tf/s", None, (204,)),
    Ask("DELETE", "/queues/tf/q", None, (204,)),
    Ask("DELETE", "/exchanges/tf/x", None, (204,)),
    Ask("DELETE", "/permissions/tf/tf", None, (204,)),
    Ask("DELETE", "/users/tf", None, (204,)),
    Ask("DELETE", "/vhosts/tf", None, (204,)),
    Ask("GET", "/vhosts/tf", statuses=(404,)),
]  # fmt: skip

#: kbudde's exporter: the request of each of its modules, with every field that becomes a metric or a label, and that
#: RabbitMQ 3.10 has in the same place. Of lists it reads the length (``partitions``, ``members``, ``online``).
KBUDDE = [
    Ask("GET", "/overview?sort=", fields=(
        "rabbitmq_version erlang_version cluster_name node queue_totals.messages queue_totals.messages_ready "
        "queue_totals.messages_unacknowledged object_totals.channels object_totals.connections object_totals.consumers "
        "object_totals.queues object_totals.exchanges message_stats.publish_details.rate "
        "message_stats.deliver_no_ack_details.rate message_stats.deliver_details.rate")),
    Ask("GET", "/queues?sort=", fields=(
        "name vhost durable policy state node idle_since messages_ready messages_unacknowledged messages "
        "messages_ready_ram messages_unacknowledged_ram messages_ram messages_persistent message_bytes "
        "message_bytes_ready message_bytes_unacknowledged message_bytes_ram message_bytes_persistent consumers "
        "consumer_utilisation memory head_message_timestamp garbage_collection.min_heap_size "
        "garbage_collection.min_bin_vheap_size garbage_collection.fullsweep_after garbage_collection.minor_gcs "
        "members online disk_reads disk_writes arguments.x-max-length effective_policy_definition.max-length "
        "message_stats.publish message_stats.publish_details.rate message_stats.deliver "
        "message_stats.deliver_details.rate message_stats.deliver_no_ack message_stats.deliver_no_ack_details.rate "
        "message_stats.get message_stats.get_no_ack message_stats.redeliver message_stats.ack")),
    Ask("GET", "/exchanges?sort=", fields="name vhost message_stats.publish_in message_stats.publish_out"),
    Ask("GET", "/nodes?sort=", fields=(
        "name uptime running mem_used mem_limit mem_alarm disk_free disk_free_alarm disk_free_limit fd_used fd_total "
        "sockets_used sockets_total partitions")),
    Ask("GET", "/nodes/gateway@here/memory?sort=", fields=(
        "memory.allocated_unused memory.atom memory.binary memory.code memory.connection_channels "
        "memory.connection_other memory.connection_readers memory.connection_writers memory.metrics memory.mgmt_db "
        "memory.mnesia memory.msg_index memory.other_ets memory.other_proc memory.other_system memory.plugins "
        "memory.queue_procs memory.queue_slave_procs memory.reserved_unallocated memory.total.allocated "
        "memory.total.rss memory.total.erlang")),
    Ask("GET", "/connections?sort=", fields=(
        "name vhost node peer_host user state channels recv_oct recv_cnt send_oct send_cnt send_pend")),
    Ask("GET", "/channels?sort=", fields="name vhost node user state confirm transactional"),
    Ask("GET", "/shovels?sort="),  # its fields: tests/bridges/test_shovels.py
    Ask("GET", "/federation-links?sort="),  # tests/bridges/test_federation.py
    Ask("GET", "/aliveness-test/%2F", fields="status"),
]  # fmt: skip

#: Datadog's check of the management API (DataDog/integrations-core, ``rabbitmq.py`` and ``const.py``): each path,
#: with the fields that become metrics or tags. Its client asks for bindings queue by queue, and for each virtual host.
DATADOG = [
    Ask("GET", "/vhosts", fields="name"),
    Ask("GET", "/overview", fields=(
        "rabbitmq_version cluster_name object_totals.connections object_totals.channels object_totals.queues "
        "object_totals.consumers queue_totals.messages queue_totals.messages_details.rate queue_totals.messages_ready "
        "queue_totals.messages_ready_details.rate queue_totals.messages_unacknowledged "
        "queue_totals.messages_unacknowledged_details.rate message_stats.ack message_stats.ack_details.rate "
        "message_stats.confirm message_stats.confirm_details.rate message_stats.deliver_get "
        "message_stats.deliver_get_details.rate message_stats.publish message_stats.publish_details.rate "
        "message_stats.drop_unroutable message_stats.drop_unroutable_details.rate message_stats.return_unroutable "
        "message_stats.return_unroutable_details.rate message_stats.redeliver message_stats.redeliver_details.rate")),
    Ask("GET", "/exchanges", fields="name vhost message_stats.publish_in message_stats.publish_in_details.rate "
        "message_stats.publish_out message_stats.publish_out_details.rate"),
    Ask("GET", "/queues", fields=(
        "name vhost node policy consumers consumer_utilisation head_message_timestamp memory messages "
        "messages_details.rate messages_ready messages_ready_details.rate message_bytes messages_unacknowledged "
        "messages_unacknowledged_details.rate message_stats.ack message_stats.ack_details.rate message_stats.deliver "
        "message_stats.deliver_details.rate message_stats.deliver_get message_stats.deliver_get_details.rate "
        "message_stats.publish message_stats.publish_details.rate message_stats.redeliver "
        "message_stats.redeliver_details.rate")),
    Ask("GET", "/queues/%2F", fields="name vhost node"),
    Ask("GET", "/queues/%2F/q/bindings", fields="source"),
    Ask("GET", "/nodes", fields="name fd_used disk_free mem_used mem_limit run_queue sockets_used partitions running "
        "mem_alarm disk_free_alarm"),
    Ask("GET", "/connections", fields="vhost state"),
    Ask("GET", "/vhosts/%2F/connections", fields="vhost state"),
    Ask("GET", "/aliveness-test/%2F", fields="status"),
]  # fmt: skip


@pytest.fixture
def busy() -> Console:
    """A console with a queue, a message that was published and fetched, and a client's connection."""
    console = Console()
    console.put("/queues/%2F/q", {"durable": True})
    message = {"properties": {"timestamp": 1}, "routing_key": "q", "payload": "x", "payload_encoding": "string"}
    for key in ("q", "nowhere"):
        console.post("/exchanges/%2F/amq.default/publish", message | {"routing_key": key})
    console.post("/queues/%2F/q/get", {"ackmode": "ack_requeue_true", "count": 1, "encoding": "auto"})
    console.gateway.connect()
    for _ in range(2):
        list(console.statistics.sample())
    return console


def value_at(answer: Any, path: str) -> Any:
    """Return the value at a dotted path; lists stand for their first entry. :raises KeyError: if it is missing."""
    for name in path.split("."):
        if isinstance(answer, list):
            answer = answer[0]
        answer = answer[name]
    return answer


def play(console: Console, asks: list[Ask]) -> None:
    for ask in asks:
        answer = console.ask(ask.method, ask.path, ask.body)
        assert answer.status in ask.statuses, (ask, answer)
        for path in ask.fields.split():
            try:
                value_at(answer.json, path)
            except (KeyError, IndexError, TypeError) as error:
                pytest.fail(f"{ask.method} {ask.path}: {path} is missing: {error!r}")


def test_the_client_of_the_terraform_provider_finds_what_it_asks_for(console: Console) -> None:
    console.gateway.broker.parameters.components |= dict.fromkeys(
        ("shovel", "federation-upstream"), lambda record: None
    )
    play(console, RABBIT_HOLE)


@pytest.fixture
def exported(busy: Console) -> Console:
    """The console with a limited quorum queue as its only queue, idle, with a message at its head."""
    busy.delete("/queues/%2F/q")
    busy.put("/policies/%2F/p", {"pattern": ".*", "definition": {"max-length": 9}})
    busy.put("/queues/%2F/q", {"durable": True, "arguments": {"x-queue-type": "quorum", "x-max-length": 5}})
    message = {"properties": {"timestamp": 1}, "routing_key": "q", "payload": "x", "payload_encoding": "string"}
    busy.post("/exchanges/%2F/amq.default/publish", message)
    for _ in range(4):
        busy.clock.advance(60)
        list(busy.statistics.sample())
    return busy


def test_the_exporter_of_kbudde_finds_its_fields(exported: Console) -> None:
    play(exported, KBUDDE)


def test_the_exporter_of_kbudde_gets_json_though_it_prefers_erlang_terms(exported: Console) -> None:
    accepted = {"Accept": "application/bert, application/json;q=0.1"}
    answer = exported.ask("GET", "/queues?sort=", headers=accepted)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")


def test_the_exporter_of_kbudde_can_read_when_a_queue_became_idle(exported: Console) -> None:
    (queue,) = exported.get("/queues?sort=")
    datetime.strptime(queue["idle_since"], "%Y-%m-%dT%H:%M:%S.%f%z")
    assert queue["state"] in ("running", "idle")


def test_the_check_of_datadog_finds_its_fields(busy: Console) -> None:
    play(busy, DATADOG)
