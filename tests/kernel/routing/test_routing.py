"""Routing of a publish to queues: a table of topologies with the expected queues."""

from dataclasses import dataclass, field

import pytest

from gateway.kernel.messages.message import Arguments, Message, Value
from gateway.kernel.vhosts.verdict import Verdict
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing import MemoryBroker
from gateway.testing.broker import header_of


@dataclass(frozen=True)
class Topology:
    """Exchanges by name (``type`` or ``type>alternate``) and bindings ``source destination key``; others are queues."""

    exchanges: dict[str, str]
    bindings: list[str]
    arguments: Arguments = field(default_factory=dict)

    def declare(self, vhost: VirtualHost) -> None:
        for name, definition in self.exchanges.items():
            type, _, alternate = definition.partition(">")
            vhost.declare_exchange(name, type, arguments={"alternate-exchange": alternate} if alternate else {})
        for binding in self.bindings:
            source, name, key = binding.split(" ")
            destination = vhost.exchange_by_name.get(name) or vhost.declare_queue(name)
            vhost.bind(vhost.exchange(source), destination, key, self.arguments)


DIRECT = Topology({"x": "direct"}, ["x puppy dog.puppy", "x guard dog.guard", "x dog dog", "x empty "])
TOPIC = Topology({"x": "topic"}, ["x one *.dog", "x any dog.#", "x all #", "x middle a.*.b"])
CYCLE = Topology({"x": "fanout", "y": "fanout"}, ["x y k", "y x k", "x first k", "y second k", "y first k"])
SELF = Topology({"x": "fanout"}, ["x x k", "x q k"])
CHAIN = Topology({"x": "direct>y", "y": "direct>z", "z": "fanout"}, ["x q x", "y r y", "z s any"])
RING = Topology({"x": "direct>y", "y": "direct>x"}, ["y q y"])
BEHIND = Topology({"x": "fanout", "y": "direct>z", "z": "fanout"}, ["x y k", "z q any"])

ROUTES = [
    # id                                              topology  exchange  key        queues
    pytest.param(DIRECT, "x", "dog", "dog", id="R12: a direct key is no prefix"),
    pytest.param(DIRECT, "x", "dog.puppy", "puppy", id="R12: a direct key matches as a whole"),
    pytest.param(DIRECT, "x", "DOG", "", id="R12: a direct key is case-sensitive"),
    pytest.param(DIRECT, "x", "", "empty", id="R19: the empty key is valid"),
    pytest.param(DIRECT, "", "dog", "dog", id="R18: the default exchange routes by queue name"),
    pytest.param(DIRECT, "", "dog.puppy", "", id="R18: the default exchange ignores other bindings"),
    pytest.param(Topology({"x": "fanout"}, ["x a 1", "x b 2"]), "x", "3", "a b", id="R13: fanout ignores the key"),
    pytest.param(TOPIC, "x", "my.dog", "one all", id="R14: * is one word"),
    pytest.param(TOPIC, "x", "dog", "any all", id="R14: # may be no word, * may not"),
    pytest.param(TOPIC, "x", "dog.a.b", "any all", id="R14: # may be many words"),
    pytest.param(TOPIC, "x", "a..b", "middle all", id="R14: a word may be empty"),
    pytest.param(TOPIC, "x", "", "all", id="R14: # alone matches the empty key"),
    pytest.param(Topology({"x": "topic"}, ["x q d.g"]), "x", "dog", "", id="R14: it is no regular expression"),
    pytest.param(
        Topology({"x": "direct"}, ["x q a", "x q b", "x r a"]), "x", "a", "q r", id="R1: one copy in each queue"
    ),
    pytest.param(Topology({"x": "topic"}, ["x q #", "x q a", "x q *"]), "x", "a", "q", id="R7: one copy in a queue"),
    pytest.param(CYCLE, "x", "k", "first second", id="R22: cycles end, and each queue gets one copy"),
    pytest.param(SELF, "x", "k", "q", id="R22: an exchange bound to itself"),
    pytest.param(CHAIN, "x", "x", "q", id="R24: a routed message goes to no alternate"),
    pytest.param(CHAIN, "x", "y", "r", id="R24: an unroutable message goes to the alternate"),
    pytest.param(CHAIN, "x", "other", "s", id="R24: alternates are followed until the message is routed"),
    pytest.param(RING, "x", "y", "q", id="R24: a cycle of alternates routes"),
    pytest.param(RING, "x", "lost", "", id="R24: a cycle of alternates ends"),
    pytest.param(BEHIND, "x", "k", "q", id="R24: the alternate of a bound exchange"),
    pytest.param(Topology({"x": "direct>nowhere"}, []), "x", "k", "", id="R24: an alternate need not exist"),
    pytest.param(Topology({"x": "direct>amq.fanout"}, ["amq.fanout q k"]), "x", "k", "q", id="R24: a predeclared one"),
    pytest.param(Topology({"x": "direct"}, []), "x", "k", "", id="R20: without a binding a message is dropped"),
    pytest.param(Topology({}, []), "", "k", "", id="R34: a message published before its queue is declared is lost"),
]


@pytest.mark.parametrize(("topology", "exchange", "key", "queues"), ROUTES)
def test_messages_reach_the_queues_that_their_bindings_select(
    broker: MemoryBroker, topology: Topology, exchange: str, key: str, queues: str
) -> None:
    topology.declare(broker.vhost)
    for _ in range(2):  # the second time the route is cached
        verdict = broker.publish(key, exchange=exchange)
        assert verdict is (Verdict.TAKEN if queues else Verdict.UNROUTED)
    assert {name: len(queue) for name, queue in broker.vhost.queue_by_name.items() if len(queue)} == dict.fromkeys(
        queues.split(), 2
    )


HEADERS = [
    # id                                             arguments                                 headers          matches
    pytest.param({}, {"a": 1}, True, id="R15: no arguments, all matches"),
    pytest.param({"x-match": "any"}, {"a": 1}, False, id="R15: no arguments, any does not match"),
    pytest.param({"a": 1, "b": 2}, {"a": 1, "b": 2}, True, id="R15: all by default"),
    pytest.param({"a": 1, "b": 2}, {"a": 1}, False, id="R15: all, one is missing"),
    pytest.param({"x-match": "any", "a": 1, "b": 2}, {"b": 2}, True, id="R15: any, one is present"),
    pytest.param({"x-match": "any", "a": 1}, {"a": 2}, False, id="R15: any, none is present"),
    pytest.param({"a": None}, {"a": "whatever"}, True, id="R15: void matches any value"),
    pytest.param({"a": None}, {}, False, id="R15: void requires presence"),
    pytest.param({"a": 1, "x-b": 2}, {"a": 1}, True, id="R15: all ignores x-"),
    pytest.param({"x-match": "all-with-x", "a": 1, "x-b": 2}, {"a": 1}, False, id="R15: all-with-x includes x-"),
    pytest.param({"x-match": "any-with-x", "x-b": 2}, {"x-b": 2}, True, id="R15: any-with-x includes x-"),
    pytest.param({"a": 1}, {"a": True}, False, id="R15: a boolean is no number"),
]


@pytest.mark.parametrize(("arguments", "headers", "matches"), HEADERS)
def test_a_headers_exchange_routes_by_the_headers_of_its_bindings(
    broker: MemoryBroker, arguments: Arguments, headers: dict[str, Value], matches: bool
) -> None:
    Topology({"x": "headers"}, ["x q ignored"], arguments).declare(broker.vhost)
    verdict = broker.publish("another key", exchange="x", headers=headers)
    assert verdict is (Verdict.TAKEN if matches else Verdict.UNROUTED)


SENDER_SELECTED = [
    pytest.param("a", ("b",), "qa qb", id="R29: routed with each key"),
    pytest.param("a", ("a", "a"), "qa", id="R29: one copy for a repeated key"),
    pytest.param("none", ("b", "c"), "qb qc", id="R29: only the further keys are routed"),
    pytest.param("none", ("nothing",), "", id="R29: no key is routed"),
]


@pytest.mark.parametrize(("key", "sender_keys", "queues"), SENDER_SELECTED)
def test_cc_and_bcc_add_routing_keys(broker: MemoryBroker, key: str, sender_keys: tuple[str, ...], queues: str) -> None:
    """R29, also while the first key's route is cached, and without changing that route."""
    Topology({"x": "direct"}, ["x qa a", "x qb b", "x qc c"]).declare(broker.vhost)
    broker.publish(key, exchange="x")
    for queue in broker.vhost.queue_by_name.values():
        queue.drops.purge()
    broker.publish(key, exchange="x", sender_keys=sender_keys)
    assert {name for name, queue in broker.vhost.queue_by_name.items() if len(queue)} == set(queues.split())
    for queue in broker.vhost.queue_by_name.values():
        queue.drops.purge()
    broker.publish(key, exchange="x")
    assert sum(map(len, broker.vhost.queue_by_name.values())) == (key == "a")


ACROSS_EXCHANGES = [
    pytest.param(["x y a", "y q b"], "q", id="R29: first key, then the further key"),
    pytest.param(["x y b", "y q a"], "q", id="R29: the further key, then the first key"),
    pytest.param(["x y a", "y q c"], "", id="R29: no key matches the second binding"),
]


@pytest.mark.parametrize(("bindings", "queues"), ACROSS_EXCHANGES)
def test_sender_selected_distribution_through_exchanges(broker: MemoryBroker, bindings: list[str], queues: str) -> None:
    Topology({"x": "direct", "y": "direct"}, bindings).declare(broker.vhost)
    broker.publish("a", exchange="x", sender_keys=("b",))
    assert {name for name, queue in broker.vhost.queue_by_name.items() if len(queue)} == set(queues.split())


def test_a_sender_selected_message_goes_to_the_alternate_only_if_no_key_is_routed(broker: MemoryBroker) -> None:
    """R24, R29."""
    Topology({"x": "direct>spare", "spare": "fanout"}, ["x q b", "spare lost k"]).declare(broker.vhost)
    broker.publish("a", exchange="x", sender_keys=("b",))
    broker.publish("a", exchange="x", sender_keys=("c",))
    assert [len(broker.vhost.queue(name)) for name in ("q", "lost")] == [1, 1]


def test_sender_selected_messages_keep_their_original_routing_key(broker: MemoryBroker) -> None:
    """R29."""
    queue = broker.vhost.declare_queue("copy")
    broker.publish("original", sender_keys=("copy",))
    entry = queue.take()
    assert entry is not None
    assert entry.message.routing_key == "original"


def test_a_route_through_a_headers_exchange_is_not_cached(broker: MemoryBroker) -> None:
    topology = Topology({"x": "fanout", "h": "headers"}, ["x h k"])
    topology.declare(broker.vhost)
    broker.vhost.bind(broker.vhost.exchange("h"), broker.vhost.declare_queue("q"), "", {"wanted": "yes"})
    assert broker.publish("k", exchange="x", headers={"wanted": "no"}) is Verdict.UNROUTED
    assert broker.publish("k", exchange="x", headers={"wanted": "yes"}) is Verdict.TAKEN
    assert broker.publish("k", exchange="x", headers={"wanted": "no"}) is Verdict.UNROUTED


def test_the_route_of_a_header_is_invalidated_by_changes_of_its_topology(broker: MemoryBroker) -> None:
    vhost, header = broker.vhost, header_of(headers={"a": 1})
    Topology({"x": "headers", "y": "headers"}, ["x q -", "x y -", "y r -"]).declare(vhost)
    exchange = vhost.exchange("x")

    def reached(key: str = "k") -> set[str]:
        vhost.publish(exchange, Message("x", key, header, b""))
        return {name for name, queue in vhost.queue_by_name.items() if queue.drops.purge()}

    assert reached() == {"q", "r"}
    assert exchange.route_by_header[header] is vhost.find_route(exchange, Message("x", "another", header, b""))
    vhost.unbind(exchange, vhost.queue("q"), "-")
    assert reached() == {"r"}
    vhost.bind(exchange, vhost.declare_queue("s"), "", {"a": 1})
    assert reached() == {"r", "s"}
    vhost.delete_queue(vhost.queue("r"))
    assert reached() == {"s"}
    vhost.bind(exchange, vhost.declare_exchange("d", "direct"), "")
    vhost.bind(vhost.exchange("d"), vhost.declare_queue("t"), "to t")
    assert reached() == {"s"}
    assert reached("to t") == {"s", "t"}
    assert not exchange.route_by_header


@pytest.mark.volume
def test_the_cache_of_the_routes_of_headers_is_bounded(broker: MemoryBroker) -> None:
    exchange = broker.vhost.exchange("amq.headers")
    for number in range(2000):
        broker.publish("", exchange="amq.headers", headers={"number": number})
    assert 0 < len(exchange.route_by_header) <= 1024
    exchange.route_by_header.clear()
    broker.publish("", exchange="amq.headers", headers={"long": "x" * 512})
    assert not exchange.route_by_header


@pytest.mark.volume
def test_the_cache_of_routes_is_bounded(broker: MemoryBroker) -> None:
    exchange = broker.vhost.exchange("amq.topic")
    for number in range(25_000):
        broker.publish(f"key.{number}", exchange="amq.topic")
    assert len(exchange.routes) <= 10_000


def test_the_default_exchange_as_alternate_routes_to_queues_declared_later(broker: MemoryBroker) -> None:
    """R24: a route cached through another exchange is invalidated when a queue of that name is declared."""
    broker.vhost.declare_exchange("x", "direct", arguments={"alternate-exchange": ""})
    assert broker.publish("q", exchange="x") is Verdict.UNROUTED
    broker.vhost.declare_queue("q")
    assert broker.publish("q", exchange="x") is Verdict.TAKEN


def test_a_cached_route_is_invalidated_by_changes_of_its_topology(broker: MemoryBroker) -> None:
    vhost = broker.vhost
    Topology({"x": "direct", "y": "fanout"}, ["x q k", "x y k", "y r any"]).declare(vhost)

    def reached() -> set[str]:
        broker.publish("k", exchange="x")
        return {name for name, queue in vhost.queue_by_name.items() if queue.drops.purge()}

    assert reached() == {"q", "r"}
    vhost.unbind(vhost.exchange("x"), vhost.queue("q"), "k")
    assert reached() == {"r"}
    vhost.bind(vhost.exchange("x"), vhost.queue("q"), "k")
    assert reached() == {"q", "r"}
    vhost.delete_exchange("y")
    assert reached() == {"q"}
    vhost.delete_queue(vhost.queue("q"))
    assert broker.publish("k", exchange="x") is Verdict.UNROUTED
