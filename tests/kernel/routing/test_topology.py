"""Topology: declarations, bindings, deletions, their equivalence, and dependent deletions.

Rules: R143, R155.
"""

from collections.abc import Callable
from itertools import pairwise

import pytest

from gateway.kernel.errors import (
    AccessRefused,
    CommandInvalid,
    GatewayError,
    InternalError,
    NotFound,
    PreconditionFailed,
    ResourceLocked,
)
from gateway.kernel.events import Event
from gateway.kernel.messages.long import Long
from gateway.kernel.messages.message import Arguments, Value
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing import MemoryBroker, Recipient

Action = Callable[[VirtualHost], object]

OWNER, OTHER = object(), object()


def declare_fixtures(vhost: VirtualHost) -> None:
    """Declare the entities that the refused requests refer to."""
    vhost.declare_exchange("x", "direct", is_durable=True, arguments={"alternate-exchange": "ae"})
    vhost.declare_exchange("used", "fanout")
    vhost.declare_queue("q", is_durable=True, arguments={"x-max-length": 5})
    vhost.declare_queue("mine", owner=OWNER, claimant=OWNER)
    vhost.bind(vhost.exchange("used"), vhost.queue("q"), "")


REFUSALS = [
    pytest.param(
        lambda vhost: vhost.declare_exchange("amq.new", "direct"),
        AccessRefused,
        "exchange name 'amq.new' contains reserved prefix 'amq.*'",
        id="R9: reserved exchange name",
    ),
    pytest.param(
        lambda vhost: vhost.declare_queue("amq.new"),
        AccessRefused,
        "queue name 'amq.new' contains reserved prefix 'amq.*'",
        id="R9: reserved queue name",
    ),
    pytest.param(
        lambda vhost: vhost.delete_exchange("amq.topic"),
        AccessRefused,
        "deletion of system exchange 'amq.topic' in vhost '/' not allowed",
        id="R9: predeclared exchange",
    ),
    pytest.param(
        lambda vhost: vhost.declare_exchange("x", "fanout", is_durable=True),
        PreconditionFailed,
        "inequivalent arg 'type' for exchange 'x' in vhost '/': received 'fanout' but current is 'direct'",
        id="R10: other type",
    ),
    pytest.param(
        lambda vhost: vhost.declare_exchange("x", "direct"),
        PreconditionFailed,
        "inequivalent arg 'durable' for exchange 'x' in vhost '/': received 'false' but current is 'true'",
        id="R10: exchange not durable",
    ),
    pytest.param(
        lambda vhost: vhost.declare_exchange("x", "direct", is_durable=True, is_internal=True),
        PreconditionFailed,
        "inequivalent arg 'internal'",
        id="R10: exchange internal",
    ),
    pytest.param(
        lambda vhost: vhost.declare_exchange("x", "direct", is_durable=True),
        PreconditionFailed,
        "inequivalent arg 'alternate-exchange' for exchange 'x' in vhost '/': received none but current is the value "
        "'ae' of type 'longstr'",
        id="R10: exchange without the argument",
    ),
    pytest.param(
        lambda vhost: vhost.declare_queue("q", arguments={"x-max-length": 5}),
        PreconditionFailed,
        "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'",
        id="R10: queue not durable",
    ),
    pytest.param(
        lambda vhost: vhost.declare_queue("q", is_durable=True, is_auto_delete=True, arguments={"x-max-length": 5}),
        PreconditionFailed,
        "inequivalent arg 'auto_delete'",
        id="R10: queue auto-delete",
    ),
    pytest.param(
        lambda vhost: vhost.declare_queue("q", is_durable=True, arguments={"x-max-length": 6}),
        PreconditionFailed,
        "inequivalent arg 'x-max-length' for queue 'q' in vhost '/': received '6' but current is '5'",
        id="R10: queue with another argument",
    ),
    pytest.param(lambda vhost: vhost.exchange("none"), NotFound, "no exchange 'none' in vhost '/'", id="R11: publish"),
    pytest.param(lambda vhost: vhost.queue("none"), NotFound, "no queue 'none' in vhost '/'", id="R33 R36: no queue"),
    pytest.param(
        lambda vhost: vhost.bind(vhost.exchange("amq.headers"), vhost.queue("q"), "", {"x-match": "some"}),
        PreconditionFailed,
        "Invalid x-match field value",
        id="R15: other x-match",
    ),
    pytest.param(
        lambda vhost: vhost.declare_exchange("new", "x-none"),
        CommandInvalid,
        "unknown exchange type 'x-none'",
        id="R17: unknown type",
    ),
    pytest.param(
        lambda vhost: vhost.bind(vhost.default_exchange, vhost.queue("q"), "k"),
        AccessRefused,
        "operation not permitted on the default exchange",
        id="R18: bind",
    ),
    pytest.param(
        lambda vhost: vhost.delete_exchange(""),
        AccessRefused,
        "operation not permitted on the default exchange",
        id="R18: delete",
    ),
    pytest.param(
        lambda vhost: vhost.declare_exchange("", "direct", is_durable=True),
        AccessRefused,
        "operation not permitted on the default exchange",
        id="R18: declare",
    ),
    pytest.param(
        lambda vhost: vhost.declare_exchange("new", "direct", arguments={"alternate-exchange": 5}),
        PreconditionFailed,
        "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'new' in vhost '/'",
        id="R24: alternate is no name",
    ),
    pytest.param(
        lambda vhost: vhost.declare_queue("mine", claimant=OTHER),
        ResourceLocked,
        "cannot obtain exclusive access to locked queue 'mine' in vhost '/'",
        id="R31: another connection declares",
    ),
    pytest.param(
        lambda vhost: vhost.declare_queue("mine", owner=OTHER, claimant=OTHER),
        ResourceLocked,
        "cannot obtain exclusive access",
        id="R31: another connection declares exclusively",
    ),
    pytest.param(
        lambda vhost: vhost.declare_queue("mine", claimant=OWNER),
        ResourceLocked,
        "exclusive property value does not match",
        id="R31: the owner declares it as shared",
    ),
    pytest.param(
        lambda vhost: vhost.queue("mine").require_owner(OTHER),
        ResourceLocked,
        "cannot obtain exclusive access",
        id="R31: another connection uses",
    ),
    pytest.param(
        lambda vhost: vhost.delete_exchange("used", if_unused=True),
        PreconditionFailed,
        "exchange 'used' in vhost '/' in use",
        id="exchange.delete if-unused",
    ),
]


@pytest.mark.parametrize(("action", "refusal", "text"), REFUSALS)
def test_an_invalid_request_is_refused(
    broker: MemoryBroker, action: Action, refusal: type[GatewayError], text: str
) -> None:
    """The error has RabbitMQ's text, and nothing changes."""
    declare_fixtures(broker.vhost)
    before = sorted(broker.vhost.exchange_by_name), sorted(broker.vhost.queue_by_name), len([*broker.vhost.bindings])
    broker.commit()
    with pytest.raises(refusal) as refused:
        action(broker.vhost)
    assert text in str(refused.value)
    vhost = broker.vhost
    assert (sorted(vhost.exchange_by_name), sorted(vhost.queue_by_name), len([*vhost.bindings])) == before


SAME_AGAIN = [
    pytest.param({"x-expires": 1000}, {"x-expires": 1000}, id="R10: equal"),
    pytest.param({"x-max-length": 5}, {"x-max-length": Long(5)}, id="R50: integers of another width"),
    pytest.param({}, {"x-unknown": 1}, id="R49: an added unknown argument"),
    pytest.param({"x-unknown": 1}, {"x-unknown": 2}, id="R49: another value of an unknown argument"),
    pytest.param({}, {"x-queue-type": "classic"}, id="R50: an explicit default"),
]


@pytest.mark.parametrize(("first", "second"), SAME_AGAIN)
def test_an_equivalent_redeclaration_is_accepted(
    vhost: VirtualHost, first: dict[str, Value], second: dict[str, Value]
) -> None:
    assert vhost.declare_queue("q", arguments=first) is vhost.declare_queue("q", arguments=second)


DIFFERENT = [
    pytest.param({"x-max-length": 5}, {}, id="R50: missing"),
    pytest.param({}, {"x-max-length": 5}, id="R50: added"),
    pytest.param({"x-message-ttl": 5}, {"x-message-ttl": 6}, id="R50: another value"),
    pytest.param({"x-max-length": 1}, {"x-max-length": 2}, id="R50: another number"),
]


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_a_redeclaration_with_other_arguments_is_refused(
    vhost: VirtualHost, first: Arguments, second: Arguments
) -> None:
    vhost.declare_queue("q", arguments=first)
    with pytest.raises(PreconditionFailed, match="inequivalent arg 'x-"):
        vhost.declare_queue("q", arguments=second)


def test_each_virtual_host_has_the_predeclared_exchanges(vhost: VirtualHost) -> None:
    """R9."""
    assert {name: (each.type_name, each.is_internal) for name, each in vhost.exchange_by_name.items()} == {
        "": ("direct", False),
        "amq.direct": ("direct", False),
        "amq.fanout": ("fanout", False),
        "amq.topic": ("topic", False),
        "amq.headers": ("headers", False),
        "amq.match": ("headers", False),
        "amq.rabbitmq.trace": ("topic", True),
    }


def test_line_breaks_are_removed_from_names(vhost: VirtualHost) -> None:
    assert vhost.declare_queue("a\r\nb").name == "ab"
    assert vhost.declare_exchange("a\nb", "direct") is vhost.exchange("ab")


def test_server_named_queues_may_have_reserved_names(vhost: VirtualHost) -> None:
    """R35."""
    assert vhost.declare_queue("amq.gen-1", is_server_named=True).name == "amq.gen-1"


# Bindings


def test_a_repeated_binding_is_the_same_binding(vhost: VirtualHost) -> None:
    """R7, whatever the order of the arguments."""
    queue, exchange = vhost.declare_queue("q"), vhost.exchange("amq.headers")
    first = vhost.bind(exchange, queue, "k", {"a": 1, "b": [1, {"c": None}]})
    assert vhost.bind(exchange, queue, "k", {"b": [1, {"c": None}], "a": 1}) is first
    assert vhost.unbind(exchange, queue, "k", {"b": [1, {"c": None}], "a": 1})
    assert not vhost.unbind(exchange, queue, "k", {"a": 1, "b": [1, {"c": None}]})


@pytest.mark.parametrize(
    ("key", "arguments"),
    [("other", {"a": 1}), ("k", {"a": 2}), ("k", {}), ("k", {"a": True}), ("k", {"a": 1.0}), ("k", {"a": "1"})],
)
def test_a_binding_with_another_key_or_argument_is_a_new_binding(
    vhost: VirtualHost, key: str, arguments: Arguments
) -> None:
    """R7: to a headers exchange True is not 1 (R15)."""
    queue, exchange = vhost.declare_queue("q"), vhost.exchange("amq.headers")
    vhost.bind(exchange, queue, "k", {"a": 1})
    vhost.bind(exchange, queue, key, arguments)
    assert len(vhost.bindings.to(queue)) == 2
    vhost.unbind(exchange, queue, "k", {"a": 1})
    assert [binding.arguments for binding in vhost.bindings.of(exchange)] == [arguments]


@pytest.mark.parametrize("exchange_is_durable", [True, False])
@pytest.mark.parametrize("queue_is_durable", [True, False])
def test_a_binding_survives_when_both_ends_do(
    broker: MemoryBroker, exchange_is_durable: bool, queue_is_durable: bool
) -> None:
    """R26, R27, R30: durable and transient ends may be bound."""
    vhost = broker.vhost
    exchange = vhost.declare_exchange("x", "direct", is_durable=exchange_is_durable)
    queue = vhost.declare_queue("q", is_durable=queue_is_durable)
    vhost.bind(exchange, queue, "k")
    broker.commit()
    after = broker.crashed().vhost
    assert ("x" in after.exchange_by_name) == exchange_is_durable
    assert ("q" in after.queue_by_name) == queue_is_durable
    assert len([*after.bindings]) == (exchange_is_durable and queue_is_durable)


def test_a_removed_binding_is_not_recovered(broker: MemoryBroker) -> None:
    vhost = broker.vhost
    exchange, queue = vhost.exchange("amq.topic"), vhost.declare_queue("q", is_durable=True)
    vhost.bind(exchange, queue, "kept")
    vhost.bind(exchange, queue, "gone")
    broker.commit()
    vhost.unbind(exchange, queue, "gone")
    broker.commit()
    assert [binding.routing_key for binding in broker.crashed().vhost.bindings] == ["kept"]


# Auto-delete


def test_an_auto_delete_exchange_is_deleted_with_its_last_binding(vhost: VirtualHost) -> None:
    """R28."""
    exchange, queue = vhost.declare_exchange("x", "direct", is_auto_delete=True), vhost.declare_queue("q")
    vhost.bind(exchange, queue, "a")
    vhost.bind(exchange, queue, "b")
    vhost.unbind(exchange, queue, "a")
    assert "x" in vhost.exchange_by_name
    vhost.unbind(exchange, queue, "b")
    assert "x" not in vhost.exchange_by_name


def test_an_auto_delete_exchange_that_was_never_a_source_is_kept(vhost: VirtualHost) -> None:
    """R28: being a destination does not count."""
    vhost.declare_exchange("x", "direct", is_auto_delete=True)
    source = vhost.declare_exchange("source", "fanout")
    vhost.bind(source, vhost.exchange("x"), "")
    vhost.unbind(source, vhost.exchange("x"), "")
    assert "x" in vhost.exchange_by_name


def test_auto_delete_exchanges_are_deleted_in_a_chain(vhost: VirtualHost) -> None:
    """R28, through exchange-to-exchange bindings (R22)."""
    exchanges = [vhost.declare_exchange(name, "fanout", is_auto_delete=True) for name in "xyz"]
    queue = vhost.declare_queue("q")
    for source, destination in pairwise(exchanges):
        vhost.bind(source, destination, "")
    vhost.bind(exchanges[-1], queue, "")
    vhost.delete_queue(queue)
    assert {"x", "y", "z"}.isdisjoint(vhost.exchange_by_name)
    assert [*vhost.bindings] == []


@pytest.mark.parametrize("is_auto_delete", [True, False])
def test_exchanges_in_a_cycle_can_be_deleted(vhost: VirtualHost, is_auto_delete: bool) -> None:
    """R22, R28: also with an exchange bound to itself."""
    first = vhost.declare_exchange("first", "fanout", is_auto_delete=is_auto_delete)
    second = vhost.declare_exchange("second", "fanout", is_auto_delete=is_auto_delete)
    vhost.bind(first, first, "")
    vhost.bind(first, second, "")
    vhost.bind(second, first, "")
    assert vhost.delete_exchange("first")
    assert ("second" in vhost.exchange_by_name) == (not is_auto_delete)
    assert [*vhost.bindings] == []


def test_an_auto_delete_queue_is_deleted_with_its_last_consumer(broker: MemoryBroker, vhost: VirtualHost) -> None:
    """R32: even if it has messages."""
    queue = vhost.declare_queue("q", is_auto_delete=True)
    recipient = Recipient()
    consumers = [recipient.consume(queue, prefetch=1) for _ in range(2)]
    for _ in range(4):
        broker.publish("q")
    recipient.cancel(consumers[0])
    vhost.delete_queue_if_done(queue)
    assert "q" in vhost.queue_by_name
    recipient.cancel(consumers[1])
    vhost.delete_queue_if_done(queue)
    assert "q" not in vhost.queue_by_name


def test_an_auto_delete_queue_that_had_no_consumer_is_kept(broker: MemoryBroker, vhost: VirtualHost) -> None:
    """R32: a get does not count."""
    queue = vhost.declare_queue("q", is_auto_delete=True)
    broker.publish("q")
    Recipient().get(queue)
    vhost.delete_queue_if_done(queue)
    assert vhost.queue("q") is queue


def test_a_queue_without_auto_delete_is_kept_without_consumers(vhost: VirtualHost) -> None:
    queue = vhost.declare_queue("q")
    recipient = Recipient()
    recipient.cancel(recipient.consume(queue))
    vhost.delete_queue_if_done(queue)
    assert vhost.queue("q") is queue


# Exclusive


def test_exclusive_queues_are_deleted_with_their_connection(vhost: VirtualHost) -> None:
    """R31."""
    vhost.declare_queue("mine", owner=OWNER)
    vhost.declare_queue("yours", owner=OTHER)
    vhost.declare_queue("shared")
    vhost.release(OWNER)
    assert set(vhost.queue_by_name) == {"yours", "shared"}


def test_a_durable_exclusive_queue_is_never_stored(broker: MemoryBroker) -> None:
    """R31: it ends with its connection, as do its bindings and messages."""
    queue = broker.vhost.declare_queue("mine", is_durable=True, owner=OWNER)
    broker.vhost.bind(broker.vhost.exchange("amq.direct"), queue, "k")
    broker.publish("mine", b"body", is_persistent=True)
    broker.commit()
    assert broker.store.held_ids == frozenset()
    after = broker.crashed().vhost
    assert after.queue_by_name == {}
    assert [*after.bindings] == []


def test_the_owner_may_declare_its_exclusive_queue_again(vhost: VirtualHost) -> None:
    """R31."""
    queue = vhost.declare_queue("mine", owner=OWNER, claimant=OWNER)
    assert vhost.declare_queue("mine", owner=OWNER, claimant=OWNER) is queue


# Deletion


def test_deleting_a_queue_removes_its_bindings_consumers_and_messages(broker: MemoryBroker) -> None:
    vhost = broker.vhost
    queue = vhost.declare_queue("q", is_durable=True)
    vhost.bind(vhost.exchange("amq.direct"), queue, "k")
    for _ in range(3):
        broker.publish("q", b"body", is_persistent=True)
    recipient = Recipient()
    recipient.consume(queue, "reader", prefetch=1)
    assert vhost.delete_queue(queue) == 2
    assert recipient.cancelled_tags == ["reader"]
    assert [*vhost.bindings] == []
    broker.commit()
    assert broker.crashed().vhost.queue_by_name == {}


def test_a_queue_is_deleted_once(vhost: VirtualHost) -> None:
    queue = vhost.declare_queue("q")
    vhost.delete_queue(queue)
    assert vhost.delete_queue(queue) == 0


def test_if_unused_and_if_empty_keep_the_queue(broker: MemoryBroker, vhost: VirtualHost) -> None:
    queue = vhost.declare_queue("q")
    broker.publish("q")
    with pytest.raises(PreconditionFailed, match="queue 'q' in vhost '/' not empty"):
        vhost.delete_queue(queue, if_empty=True)
    Recipient().consume(queue)
    with pytest.raises(PreconditionFailed, match="queue 'q' in vhost '/' in use"):
        vhost.delete_queue(queue, if_unused=True)
    assert vhost.queue("q") is queue


def test_deleting_an_unknown_exchange_returns_false(vhost: VirtualHost) -> None:
    assert vhost.delete_exchange("none") is False


# Events


def test_each_declaration_and_deletion_emits_one_event(broker: MemoryBroker, vhost: VirtualHost) -> None:
    events: list[tuple[str, str]] = []

    def listen(event: Event) -> None:
        assert event.vhost == "/"
        events.append((event.name, event.subject))

    broker.kernel.events.subscribe(listen)
    for _ in range(2):
        vhost.declare_exchange("x", "direct")
        vhost.declare_queue("q")
        vhost.bind(vhost.exchange("x"), vhost.queue("q"), "k")
    vhost.delete_exchange("x")
    vhost.delete_queue(vhost.queue("q"))
    assert events == [
        ("exchange.created", "x"),
        ("queue.created", "q"),
        ("binding.created", "q"),
        ("binding.deleted", "q"),
        ("exchange.deleted", "x"),
        ("queue.deleted", "q"),
    ]


def test_r30_a_transient_shared_queue_is_refused_where_it_is_not_permitted() -> None:
    vhost = MemoryBroker(permits_transient_queues=False).vhost
    with pytest.raises(InternalError, match="transient non-exclusive queues are not permitted: queue 'q' is neither"):
        vhost.declare_queue("q")
    assert vhost.declare_queue("mine", owner=object()).name == "mine"
    assert vhost.declare_queue("kept", is_durable=True).name == "kept"
