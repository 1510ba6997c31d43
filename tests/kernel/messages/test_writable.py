"""Entities are encoded before they are accepted: a request that cannot be stored is refused and changes nothing."""

from collections.abc import Callable

import pytest

from gateway.kernel.errors import PreconditionFailed, StorageError, UnreadableRecord
from gateway.kernel.journal.entity_codec import MOST_NESTED, decode_entity, encode_entity, require_writable, writable
from gateway.kernel.journal.records.access import UserRecord
from gateway.kernel.journal.records.topology import ParameterRecord, PolicyRecord, QueueRecord
from gateway.kernel.messages.message import Value
from gateway.testing import MemoryBroker


def nested(depth: int) -> Value:
    value: Value = "innermost"
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def entities_of(broker: MemoryBroker) -> tuple[object, ...]:
    kernel, vhost = broker.kernel, broker.vhost
    return (
        sorted(vhost.queue_by_name),
        sorted(vhost.exchange_by_name),
        len(list(vhost.bindings)),
        list(kernel.policies),
        list(kernel.parameters),
        sorted(kernel.directory.user_by_name),
        vhost.record,
    )


DECLARATIONS: list[tuple[str, Callable[[MemoryBroker, dict[str, Value]], object]]] = [
    ("queue", lambda broker, table: broker.vhost.declare_queue("new", is_durable=True, arguments=table)),
    ("transient queue", lambda broker, table: broker.vhost.declare_queue("new", arguments=table)),
    ("exchange", lambda broker, table: broker.vhost.declare_exchange("new", "fanout", arguments=table)),
    (
        "binding",
        lambda broker, table: broker.vhost.bind(
            broker.vhost.exchange("amq.fanout"), broker.vhost.queue("old"), "k", table
        ),
    ),
    (
        "policy",
        lambda broker, table: broker.kernel.put_policy(
            PolicyRecord("/", "p", False, ".*", "all", 0, {"ha-mode": "all", "ha-params": table})
        ),
    ),
    (
        "parameter",
        lambda broker, table: broker.kernel.parameters.put(ParameterRecord("/", "shovel", "s", table)),
    ),
    ("limits", lambda broker, table: broker.kernel.limit_vhost("/", table)),
    ("vhost", lambda broker, table: broker.kernel.declare_vhost("new", plugins={"p": table})),
    ("user", lambda broker, table: broker.kernel.directory.put_user(UserRecord("u", "", "", [], table))),
]


@pytest.mark.parametrize(("what", "declare"), DECLARATIONS, ids=[what for what, _ in DECLARATIONS])
@pytest.mark.parametrize(
    "table",
    [
        pytest.param({"x": nested(330)}, id="nested 330 deep"),
        pytest.param({"x": "\ud800"}, id="a lone surrogate"),
        pytest.param({"x": object()}, id="no value"),
    ],
)
def test_a_request_that_cannot_be_stored_is_refused_and_changes_nothing(
    broker: MemoryBroker,
    what: str,
    declare: Callable[[MemoryBroker, dict[str, Value]], object],
    table: dict[str, Value],
) -> None:
    broker.vhost.declare_queue("old", is_durable=True)
    broker.commit()
    before = entities_of(broker)
    with pytest.raises((PreconditionFailed, TypeError)):  # TypeError for values that no client can send
        declare(broker, table)
    assert entities_of(broker) == before
    broker.commit()
    assert entities_of(broker.crashed()) == before


def test_nesting_beyond_the_limit_is_refused() -> None:
    require_writable({"x": nested(MOST_NESTED - 1)})
    with pytest.raises(PreconditionFailed, match=f"more than {MOST_NESTED} tables and lists are inside each other"):
        require_writable({"x": nested(MOST_NESTED + 1)})


def test_a_writable_entity_is_returned_with_its_record() -> None:
    queue = QueueRecord("/", "q", 7, False, {"x": nested(MOST_NESTED - 1)})
    put = writable(queue)
    assert put.record == encode_entity(queue)
    assert decode_entity("queue", put.record) == queue


@pytest.mark.parametrize(
    "corrupt",
    [
        pytest.param(lambda record: b"", id="empty"),
        pytest.param(lambda record: record[:2], id="an incomplete head"),
        pytest.param(lambda record: record[:-1], id="an incomplete end"),
        pytest.param(lambda record: record[:3] + b"[]", id="no mapping"),
        pytest.param(lambda record: record[:3] + b"{}", id="no fields"),
        pytest.param(lambda record: record[:3] + b"\xff" * 20, id="no UTF-8"),
        pytest.param(lambda record: record.replace(b"name", b"nome"), id="another field"),
        pytest.param(lambda record: record.replace(b'"q"', b'"\xed\xa0\x80"'), id="a lone surrogate"),
        pytest.param(lambda record: record[:3] + b'{"a":' * 5000 + b"1" + b"}" * 5000, id="nested 5,000 deep"),
        pytest.param(lambda record: record.replace(b"7", b'{"$":["int","zz"]}'), id="an invalid number"),
        pytest.param(lambda record: record.replace(b"7", b'{"$":["decimal","zz"]}'), id="an invalid decimal"),
    ],
)
def test_a_corrupt_record_raises_unreadable_record_only(corrupt: Callable[[bytes], bytes]) -> None:
    record = encode_entity(QueueRecord("/", "q", 7, False, {}))
    with pytest.raises(UnreadableRecord):
        decode_entity("queue", corrupt(record))


def test_a_record_of_a_newer_version_is_not_reported_as_corrupt() -> None:
    record = encode_entity(QueueRecord("/", "q", 7, False, {}))
    with pytest.raises(StorageError, match="written by a newer gateway") as refused:
        decode_entity("queue", b"\x09" + record[1:])
    assert not isinstance(refused.value, UnreadableRecord)
