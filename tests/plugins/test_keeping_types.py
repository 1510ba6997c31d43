"""x-recent-history and x-lvc: a new destination gets messages that were published before."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from gateway.api import Arguments, Binding, KeptMessages, Message, PreconditionFailed, Value
from gateway.kernel.events import Event
from gateway.kernel.features.keeping import MOST_AT_ONCE
from gateway.kernel.journal.changes import Put
from gateway.kernel.vhosts.exchange_swap import ExchangeSwap
from gateway.testing import MemoryBroker, Recipient, StandIn, check_exchange_type, plain_message, stand_in_binding
from gateway_exchanges.last_value import LastValue
from gateway_exchanges.recent_history import RecentHistory


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


def declare(broker: MemoryBroker, type: str, arguments: Arguments | None = None, *, is_durable: bool = True) -> None:
    broker.vhost.declare_exchange("x", type, is_durable=is_durable, arguments=arguments)


def publish(broker: MemoryBroker, *bodies: bytes, key: str = "k", **more: bool | Mapping[str, Value]) -> None:
    for body in bodies:
        broker.publish(key, body, exchange="x", **more)  # type: ignore[arg-type]  # keyword arguments of publish


def given_to_new_queue(broker: MemoryBroker, key: str = "k", name: str = "new") -> list[bytes]:
    """Bind a new queue; return the bodies of its messages."""
    queue = broker.vhost.declare_queue(name)
    broker.vhost.bind(broker.vhost.exchange("x"), queue, key)
    return bodies_in(broker, name)


def swap_of(broker: MemoryBroker, types: Mapping[str, Any]) -> ExchangeSwap:
    """Return the swap that replaces the exchange types."""
    vhost = broker.vhost
    return ExchangeSwap(vhost.exchanges, vhost.bindings, types, lambda name: False, may_become_inert=False)


def bodies_in(broker: MemoryBroker, name: str) -> list[bytes]:
    recipient = Recipient()
    recipient.consume(broker.vhost.queue(name), settles=False)
    broker.advance(0.1)
    recipient.leave()
    return recipient.bodies


def stored(broker: MemoryBroker) -> list[str]:
    broker.commit()
    changes = broker.store.reopened().recover()
    return [str(each.entity.key[-1]) for each in changes if isinstance(each, Put) and each.entity.kind == "kept"]


@pytest.mark.parametrize("factory", [RecentHistory, LastValue])
def test_the_type_fulfils_the_contract(factory: type[RecentHistory | LastValue]) -> None:
    check_exchange_type(factory)


# x-recent-history


def test_a_new_queue_gets_the_latest_twenty_messages_in_order(broker: MemoryBroker) -> None:
    declare(broker, "x-recent-history")
    publish(broker, *(b"%d" % number for number in range(25)))
    assert given_to_new_queue(broker, "ignored") == [b"%d" % number for number in range(5, 25)]


def test_the_argument_sets_the_number_of_messages(broker: MemoryBroker) -> None:
    declare(broker, "x-recent-history", {"x-recent-history-length": 2})
    publish(broker, b"a", b"b", b"c")
    assert given_to_new_queue(broker) == [b"b", b"c"]


@pytest.mark.parametrize("length", [0, -1, "5", True, 1.5, None])
def test_a_length_that_is_no_positive_integer_is_refused(length: Value) -> None:
    with pytest.raises(PreconditionFailed, match="'x-recent-history-length' must be a positive integer"):
        RecentHistory({"x-recent-history-length": length})


def test_a_message_with_the_header_no_store_is_routed_but_not_kept(broker: MemoryBroker) -> None:
    declare(broker, "x-recent-history")
    given_to_new_queue(broker, name="first")
    for value in (True, False, "true"):
        publish(broker, str(value).encode(), headers={"x-recent-history-no-store": value})
    assert bodies_in(broker, "first") == [b"True", b"False", b"true"]
    assert given_to_new_queue(broker) == [b"False", b"true"]


def test_only_the_new_queue_gets_the_history_and_once(broker: MemoryBroker) -> None:
    declare(broker, "x-recent-history")
    publish(broker, b"a")
    assert given_to_new_queue(broker, name="first") == [b"a"]
    assert given_to_new_queue(broker, name="second") == [b"a"]
    broker.vhost.bind(broker.vhost.exchange("x"), broker.vhost.queue("second"), "k")
    assert bodies_in(broker, "first") == bodies_in(broker, "second") == []


def test_a_bound_exchange_passes_the_history_on_to_its_queues(broker: MemoryBroker) -> None:
    declare(broker, "x-recent-history")
    publish(broker, b"a", key="yes")
    publish(broker, b"b", key="no")
    direct = broker.vhost.declare_exchange("d", "direct")
    broker.vhost.bind(direct, broker.vhost.declare_queue("behind"), "yes")
    broker.vhost.bind(broker.vhost.exchange("x"), direct, "")
    assert bodies_in(broker, "behind") == [b"a"]


def test_a_message_that_arrives_through_another_exchange_is_kept_too(broker: MemoryBroker) -> None:
    declare(broker, "x-recent-history")
    fan = broker.vhost.declare_exchange("fan", "fanout")
    broker.vhost.bind(fan, broker.vhost.exchange("x"), "")
    broker.publish("k", b"via", exchange="fan")
    assert given_to_new_queue(broker) == [b"via"]


def test_a_long_history_is_handed_over_in_slices(broker: MemoryBroker) -> None:
    length = 3 * MOST_AT_ONCE
    declare(broker, "x-recent-history", {"x-recent-history-length": length})
    publish(broker, *(b"%d" % number for number in range(length)))
    assert given_to_new_queue(broker) == [b"%d" % number for number in range(length)]


def test_a_delayed_message_is_kept_when_it_is_due(broker: MemoryBroker) -> None:
    declare(broker, "x-delayed-message", {"x-delayed-type": "x-recent-history"})
    publish(broker, b"later", headers={"x-delay": 5000})
    assert given_to_new_queue(broker, name="early") == []
    broker.advance(6)
    assert bodies_in(broker, "early") == [b"later"]
    assert given_to_new_queue(broker, name="late") == [b"later"]


def test_a_repeated_message_is_not_kept(broker: MemoryBroker) -> None:
    declare(broker, "x-recent-history", {"x-message-deduplication": True, "x-cache-size": 10})
    publish(broker, b"first", b"again", headers={"x-deduplication-header": "same"})
    assert given_to_new_queue(broker) == [b"first"]


# x-lvc


def test_a_new_queue_gets_the_last_value_of_its_key(broker: MemoryBroker) -> None:
    declare(broker, "x-lvc")
    publish(broker, b"1", b"2", key="a")
    publish(broker, b"3", key="b")
    assert given_to_new_queue(broker, "a", "qa") == [b"2"]
    assert given_to_new_queue(broker, "b", "qb") == [b"3"]
    assert given_to_new_queue(broker, "c", "qc") == []
    publish(broker, b"4", key="a")
    assert bodies_in(broker, "qa") == [b"4"]
    assert bodies_in(broker, "qb") == []


def test_a_value_is_kept_under_each_key_of_its_sender(broker: MemoryBroker) -> None:
    declare(broker, "x-lvc")
    broker.publish("a", b"copied", exchange="x", sender_keys=("b",))
    queue = broker.vhost.declare_queue("q")
    broker.vhost.bind(broker.vhost.exchange("x"), queue, "b")
    recipient = Recipient()
    recipient.consume(queue)
    assert [(each.body, each.message.routing_key) for each in recipient.received] == [(b"copied", "b")]


# Restarts

RESTARTS = ["crashed", "stopped"]


@pytest.mark.parametrize("end", RESTARTS)
@pytest.mark.parametrize("type", ["x-recent-history", "x-lvc"])
def test_persistent_messages_of_a_durable_exchange_survive(broker: MemoryBroker, type: str, end: str) -> None:
    declare(broker, type, {"x-recent-history-length": 3})
    publish(broker, b"1", b"2", b"3", b"4", is_persistent=True)
    expected = given_to_new_queue(broker, name="before")
    broker.commit()
    again: MemoryBroker = getattr(broker, end)()
    assert given_to_new_queue(again, name="after") == expected
    publish(again, b"5", is_persistent=True)
    assert given_to_new_queue(again, name="later") == ([b"5"] if type == "x-lvc" else [b"3", b"4", b"5"])


def test_transient_messages_are_kept_until_the_restart_only(broker: MemoryBroker) -> None:
    declare(broker, "x-lvc")
    publish(broker, b"old", is_persistent=True)
    publish(broker, b"new")
    assert stored(broker) == []
    assert given_to_new_queue(broker) == [b"new"]
    assert given_to_new_queue(broker.crashed()) == []


def test_a_transient_exchange_stores_none(broker: MemoryBroker) -> None:
    declare(broker, "x-recent-history", is_durable=False)
    publish(broker, b"a", is_persistent=True)
    assert stored(broker) == []


def test_only_the_last_messages_are_stored(broker: MemoryBroker) -> None:
    declare(broker, "x-recent-history", {"x-recent-history-length": 2})
    publish(broker, *(b"%d" % number for number in range(100)), is_persistent=True)
    assert stored(broker) == ["98", "99"]
    publish(broker, b"100", is_persistent=True)
    assert stored(broker) == ["99", "100"]


def test_the_messages_of_a_deleted_exchange_are_deleted(broker: MemoryBroker) -> None:
    declare(broker, "x-recent-history")
    publish(broker, b"a", b"b", is_persistent=True)
    assert stored(broker) == ["0", "1"]
    broker.vhost.delete_exchange("x")
    broker.advance(1)
    assert stored(broker) == []
    assert broker.vhost.keeping.room.count == broker.vhost.keeping.room.bytes == 0
    declare(broker, "x-recent-history")
    assert given_to_new_queue(broker) == []


def test_a_new_exchange_keeps_its_records_while_those_of_its_namesake_are_deleted(broker: MemoryBroker) -> None:
    declare(broker, "x-lvc")
    for number in range(200):
        publish(broker, b"old", key=str(number), is_persistent=True)
    broker.commit()
    broker.vhost.delete_exchange("x")
    declare(broker, "x-lvc")
    publish(broker, b"new", key="199", is_persistent=True)
    broker.advance(1)
    assert stored(broker) == ["199"]
    assert given_to_new_queue(broker.crashed(), "199") == [b"new"]


# Replaced types


class Latest(RecentHistory):
    """Another version of the type: hands over the last message only."""

    def bound(self, binding: Binding) -> Iterable[Message]:
        return list(super().bound(binding))[-1:]


@pytest.mark.parametrize("is_committed", [True, False])
def test_messages_are_kept_while_the_type_is_replaced_and_after(broker: MemoryBroker, is_committed: bool) -> None:
    declare(broker, "x-recent-history")
    publish(broker, b"before")
    types = {**broker.vhost.exchange_types, "x-recent-history": Latest}
    swap = swap_of(broker, types)
    for _ in swap.steps():
        publish(broker, b"during")
    assert given_to_new_queue(broker, name="during")[0] == b"before"
    if is_committed:
        swap.commit()
    else:
        swap.abandon()
    publish(broker, b"after")
    found = given_to_new_queue(broker, name="after")
    assert found[-1] == b"after"
    assert (len(found) == 1) is is_committed


def test_a_type_that_begins_to_keep_messages_does_so_from_then_on(broker: MemoryBroker) -> None:
    declare(broker, "fanout")
    publish(broker, b"before")
    swap = swap_of(broker, {**broker.vhost.exchange_types, "fanout": RecentHistory})
    for _ in swap.steps():
        publish(broker, b"during")
    swap.commit()
    publish(broker, b"after")
    assert given_to_new_queue(broker) == [b"after"]


def test_an_explanation_keeps_nothing(broker: MemoryBroker) -> None:
    declare(broker, "x-recent-history")
    for _ in broker.vhost.explaining(broker.vhost.exchange("x"), plain_message("k")):
        pass
    assert given_to_new_queue(broker) == []


# Limits and faults


def test_the_oldest_messages_of_an_exchange_make_room(broker: MemoryBroker) -> None:
    declare(broker, "x-lvc")
    broker.vhost.keeping.room.max_messages = 2
    for key in ("a", "b", "a", "c"):
        publish(broker, key.encode(), key=key)
    found = [given_to_new_queue(broker, key, key) for key in ("a", "b", "c")]
    assert found == [[b"a"], [], [b"c"]]


def test_a_message_larger_than_the_limit_is_not_kept_and_reported_once(broker: MemoryBroker) -> None:
    events: list[Event] = []
    broker.kernel.events.subscribe(events.append)
    declare(broker, "x-lvc")
    broker.vhost.keeping.room.max_bytes = 1000
    publish(broker, b"small")
    publish(broker, b"x" * 1000, b"x" * 1000)
    assert given_to_new_queue(broker) == []
    assert broker.vhost.keeping.refused == 2
    assert [event.details["refused"] for event in events if event.name == "kept.refused"] == [1]


def test_kept_messages_count_their_size() -> None:
    kept = KeptMessages()
    for name in ("a", "b", "a"):
        kept.put(name, plain_message(name))
    assert kept.names == ["b", "a"]
    kept.drop("missing")
    kept.drop_oldest()
    assert (kept.names, kept.newest_name, len(kept)) == (["a"], "a", 1)


class Faulty(RecentHistory):
    """Raises in the method that ``fails`` names."""

    fails = ""

    def attach(self, kept: KeptMessages) -> None:
        self._raise_in("attach")
        super().attach(kept)

    def published(self, message: Message) -> None:
        self._raise_in("published")
        super().published(message)

    def bound(self, binding: Binding) -> Iterable[Message]:
        self._raise_in("bound")
        return super().bound(binding)

    def _raise_in(self, method: str) -> None:
        if self.fails == method:
            raise ValueError("broken")


@pytest.mark.parametrize("method", ["attach", "published", "bound"])
def test_an_exception_of_the_type_costs_only_the_kept_messages(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(Faulty, "fails", method)
    monkeypatch.setitem(broker.vhost.exchange_types, "x-recent-history", Faulty)  # type: ignore[arg-type]  # a dict
    declare(broker, "x-recent-history")
    publish(broker, b"a")
    assert given_to_new_queue(broker) == []
    publish(broker, b"b")
    assert bodies_in(broker, "new") == [b"b"]
    assert broker.kernel.faults.count_by_kind[method] >= 1


def test_an_answer_that_is_no_message_is_a_fault(broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LastValue, "bound", lambda self, binding: ["nonsense"])
    declare(broker, "x-lvc")
    assert given_to_new_queue(broker) == []
    assert broker.kernel.faults.count_by_kind == {"bound": 1}


# The contract


class Forgetful(RecentHistory):
    """Keeps messages outside of what it was given."""

    def attach(self, kept: KeptMessages) -> None:
        """Ignore what it is given."""


class Inventive(LastValue):
    """Hands over a message that was not published."""

    def bound(self, binding: Binding) -> Iterable[Message]:
        return [plain_message("invented", body=b"?")] if len(self._kept) else []


class Eager(LastValue):
    """Hands over a message before any was published."""

    def bound(self, binding: Binding) -> Iterable[Message]:
        return [plain_message("invented", body=b"?")]


class Partial(RecentHistory):
    """Lacks a method."""

    bound = None  # type: ignore[assignment]  # as if it were missing


@pytest.mark.parametrize(
    ("factory", "sentence"),
    [
        (Forgetful, "After a restart, bound.. returns other messages"),
        (Inventive, "that was not published"),
        (Eager, "before any was published"),
        (Partial, r"The type has attach and published\(\), but not bound\(\)"),
    ],
)
def test_the_check_names_the_broken_promise(factory: type[RecentHistory], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_exchange_type(factory)


def test_a_history_without_a_broker(broker: MemoryBroker) -> None:
    exchange = RecentHistory({"x-recent-history-length": 1})
    exchange.attach(KeptMessages())
    for body in (b"a", b"b"):
        exchange.published(plain_message("k", body=body))
    assert [message.body for message in exchange.bound(stand_in_binding(StandIn("q")))] == [b"b"]
