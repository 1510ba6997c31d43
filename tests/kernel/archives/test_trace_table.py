"""The trace table: message events are recorded while a virtual host has it enabled, and only then."""

import json
from typing import Any

import pytest

from gateway.kernel.archives.archive import TRACE, ArchiveRules
from gateway.kernel.journal.confirms import Confirms
from gateway.kernel.messages.chunks import entries
from gateway.kernel.messages.contents import decode_content
from gateway.kernel.messages.message import Message, Value
from gateway.kernel.messages.origin import Origin
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.testing import MemoryBroker
from gateway.testing.broker import header_of

ORIGIN = Origin("client -> broker", 1, "guest", "amqp091")

COLUMNS = (
    "event", "timestamp", "monotonic_ns", "protocol", "connection", "user_id", "queue", "exchange", "routing_key",
    "message_id", "trace_id", "position", "outcome", "reason", "redelivered", "body_size",
)  # fmt: skip


def broker_with_trace_table() -> MemoryBroker:
    broker = MemoryBroker()
    broker.kernel.trace_to_table("/", True)
    broker.commit()
    return broker


def declare(broker: MemoryBroker, name: str = "q", **arguments: Value) -> None:
    asked = {f"x-{argument.replace('_', '-')}": value for argument, value in arguments.items()}
    broker.vhost.declare_queue(name, is_durable=True, arguments=asked)


def publish(broker: MemoryBroker, key: str = "q", body: bytes = b"body", *, is_persistent: bool = True) -> None:
    message = Message("", key, header_of(is_persistent=is_persistent), body)
    broker.vhost.publish(broker.vhost.default_exchange, message, ORIGIN)


def trace_events(broker: MemoryBroker) -> list[dict[str, Any]]:
    broker.commit()
    [archive] = [archive for archive in broker.vhost.archives if archive.record.source == TRACE]
    rows = []
    while (chunks := archive.log.read(archive.log.first + len(rows), 1 << 20)) is not None:
        rows += [json.loads(decode_content(content).body) for _, _, _, content in entries(chunks, len(rows))]
    return [dict(zip(COLUMNS, row, strict=True)) for turn in rows for row in turn]


def event_names(broker: MemoryBroker) -> list[str]:
    return [event["event"] for event in trace_events(broker)]


def test_the_events_of_a_message_are_recorded_in_order() -> None:
    broker = broker_with_trace_table()
    declare(broker)
    publish(broker)
    target = broker.vhost.queue("q")
    entry = target.take()
    assert entry is not None
    assert broker.vhost.tracing is not None
    broker.vhost.tracing.delivered(entry.message, target, False, ORIGIN, entry)
    target.settle(entry, DeliveryOutcome.ACCEPTED)
    published, routed, enqueued, delivered, settled = trace_events(broker)
    assert [published["event"], routed["event"], enqueued["event"]] == ["publish", "route", "enqueue"]
    assert [delivered["event"], settled["event"], settled["outcome"]] == ["deliver", "settle", "accepted"]
    assert (published["protocol"], published["connection"]) == ("amqp091", ORIGIN.connection)
    assert published["user_id"] == "guest"
    assert (published["routing_key"], published["body_size"], published["queue"]) == ("q", 4, None)
    assert routed["queue"] == enqueued["queue"] == delivered["queue"] == settled["queue"] == "q"
    assert enqueued["position"] == delivered["position"] == settled["position"] == entry.position
    assert len({event["trace_id"] for event in (published, routed, enqueued, delivered, settled)}) == 1
    assert published["timestamp"] == broker.clock.wall_ms()
    assert delivered["redelivered"] is False


def test_a_requeued_or_rejected_message_is_recorded_with_its_outcome() -> None:
    broker = broker_with_trace_table()
    declare(broker)
    publish(broker)
    target = broker.vhost.queue("q")
    for outcome in (DeliveryOutcome.REQUEUED, DeliveryOutcome.REJECTED):
        entry = target.take()
        assert entry is not None
        target.settle(entry, outcome)
    tail = trace_events(broker)[3:]
    assert [(event["event"], event["outcome"], event["reason"]) for event in tail] == [
        ("requeue", "requeued", None),
        ("settle", "rejected", None),
        ("drop", None, "rejected"),
    ]


def test_an_expired_message_and_its_dead_letter_have_one_trace_id() -> None:
    broker = broker_with_trace_table()
    declare(broker, message_ttl=1000, dead_letter_exchange="", dead_letter_routing_key="dead")
    declare(broker, "dead")
    publish(broker)
    broker.advance(2)
    broker.end_turn()
    found = trace_events(broker)
    assert [event["event"] for event in found] == ["publish", "route", "enqueue", "expire", "dead-letter", "enqueue"]
    assert {event["trace_id"] for event in found} == {found[0]["trace_id"]}
    assert (found[3]["queue"], found[4]["reason"], found[5]["queue"]) == ("q", "expired", "dead")


@pytest.mark.parametrize(
    ("overflow", "expected_names"), [("drop-head", ["enqueue", "drop"]), ("reject-publish", ["drop"])]
)
def test_a_message_dropped_at_the_length_limit_is_recorded(overflow: str, expected_names: list[str]) -> None:
    broker = broker_with_trace_table()
    declare(broker, max_length=1, overflow=overflow)
    publish(broker)
    publish(broker)
    assert event_names(broker)[5:] == expected_names
    assert trace_events(broker)[-1]["reason"] == "maxlen"


def test_an_unroutable_message_has_no_route_event() -> None:
    broker = broker_with_trace_table()
    publish(broker, "nowhere")
    assert event_names(broker) == ["publish"]


def test_a_message_in_a_stream_is_recorded_with_its_offset() -> None:
    broker = broker_with_trace_table()
    declare(broker, queue_type="stream")
    publish(broker)
    publish(broker)
    assert [event["position"] for event in trace_events(broker) if event["event"] == "enqueue"] == [0, 1]


def test_existing_queues_are_traced_until_tracing_is_disabled() -> None:
    broker = MemoryBroker()
    declare(broker)
    publish(broker)
    broker.kernel.trace_to_table("/", True)
    broker.advance(1)
    publish(broker)
    broker.kernel.trace_to_table("/", False)
    publish(broker)
    broker.commit()
    assert event_names(broker) == ["publish", "route", "enqueue"]
    assert broker.vhost.tracing is None


def test_a_virtual_host_without_tracing_has_neither_feature_nor_archive() -> None:
    broker = MemoryBroker()
    declare(broker)
    publish(broker)
    assert broker.vhost.tracing is None
    assert broker.vhost.archiving is None
    assert len(broker.vhost.archives) == 0


def test_the_table_survives_a_restart_and_trace_ids_keep_rising() -> None:
    broker = broker_with_trace_table()
    declare(broker)
    publish(broker)
    first = trace_events(broker)
    broker.clock.advance(1)
    after = broker.crashed()
    publish(after)
    found = trace_events(after)
    assert found[: len(first)] == first
    assert [event["event"] for event in found[len(first) :]] == ["publish", "route", "enqueue"]
    assert found[-1]["trace_id"] > first[-1]["trace_id"]


def test_events_are_durable_together_with_their_messages() -> None:
    """After a crash either both are there or none."""
    broker = broker_with_trace_table()
    declare(broker)
    broker.commit()
    publish(broker)
    broker.end_turn()
    after = broker.crashed()
    assert trace_events(after) == []
    assert len(after.vhost.queue("q")) == 0


def test_a_confirm_waits_for_a_traced_message() -> None:
    broker, answers = broker_with_trace_table(), []
    declare(broker)
    broker.commit()
    confirms = Confirms(broker.kernel.journal, lambda number, _many, _good: answers.append(number))
    message = Message("", "q", header_of(is_persistent=True), b"body")
    broker.vhost.publish(broker.vhost.default_exchange, message, ORIGIN)
    confirms.published(True, message.id != 0)
    broker.end_turn()
    assert answers == []
    broker.commit()
    assert answers == [1]


def test_events_are_dropped_and_counted_while_the_archive_is_full() -> None:
    broker = MemoryBroker()
    broker.kernel.archive_context.rules = ArchiveRules(segment_size=300, most_waiting=500)
    broker.kernel.trace_to_table("/", True)
    for _ in range(10):
        publish(broker, "nowhere")
        broker.commit()
    kept = len(event_names(broker))
    assert 0 < kept < 10
    assert broker.vhost.trace_table.dropped == 10 - kept
