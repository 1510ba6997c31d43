"""Stateful test of routing: after any change of the topology messages are routed as in a model without caches.

Few keys are published repeatedly, so nearly every publish meets a route that was cached before the last change. The
model walks a list of bindings, without indexes.
"""

from dataclasses import dataclass
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from gateway.kernel.queueing.queue import Queue
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.verdict import Verdict
from gateway.testing import MemoryBroker
from tests.effort import examples
from tests.kernel.broker_machine import BrokerMachine

EXCHANGES: Final = ("x1", "x2", "x3")
QUEUES: Final = ("q1", "q2", "a.b")
TYPES: Final = ("direct", "fanout", "topic", "headers")
ALTERNATES: Final = (None, None, *EXCHANGES, "", "nowhere")
KEYS: Final = ("", "a", "a.b", "q1")
PATTERNS: Final = (*KEYS, "#", "*", "a.*", "*.b", "a.#", "#.b")

exchange_names = st.sampled_from(EXCHANGES)
queue_names = st.sampled_from(QUEUES)
patterns = st.sampled_from(PATTERNS)


def words_match(pattern: list[str], key: list[str]) -> bool:
    """Return whether a topic pattern matches a key, word by word (R14)."""
    if not pattern:
        return not key
    if pattern[0] == "#":
        return any(words_match(pattern[1:], key[count:]) for count in range(len(key) + 1))
    return bool(key) and pattern[0] in ("*", key[0]) and words_match(pattern[1:], key[1:])


def words(key: str) -> list[str]:
    return key.split(".") if key else []


def matches(type: str, pattern: str, key: str) -> bool:
    if type == "direct":
        return pattern == key
    return type != "topic" or words_match(words(pattern), words(key))


@dataclass(frozen=True)
class Declared:
    """An exchange of the model."""

    type: str
    alternate: str | None
    is_auto_delete: bool


class RoutingMachine(BrokerMachine):
    """Random declarations, bindings, deletions and publishes."""

    @initialize(types=st.tuples(*[st.sampled_from(TYPES)] * len(EXCHANGES)), alternate=st.sampled_from(ALTERNATES))
    def start(self, types: tuple[str, ...], alternate: str | None) -> None:
        """Declare everything, without bindings."""
        self.broker = MemoryBroker()
        self.exchanges: dict[str, Declared] = {}
        self.queues: dict[str, Queue] = {}
        self.bindings: set[tuple[str, str, str]] = set()
        for name, type in zip(EXCHANGES, types, strict=True):
            self.declare_exchange(name, type, alternate, is_auto_delete=False)
        for name in QUEUES:
            self.declare_queue(name)

    # Steps

    @rule(
        name=exchange_names,
        type=st.sampled_from(TYPES),
        alternate=st.sampled_from(ALTERNATES),
        is_auto_delete=st.booleans(),
    )
    def declare_exchange(self, name: str, type: str, alternate: str | None, is_auto_delete: bool) -> None:
        if name not in self.exchanges:
            self.exchanges[name] = Declared(type, alternate, is_auto_delete)
            arguments = {} if alternate is None else {"alternate-exchange": alternate}
            self.broker.vhost.declare_exchange(
                name, type, is_durable=True, is_auto_delete=is_auto_delete, arguments=arguments
            )

    @rule(name=exchange_names)
    def delete_exchange(self, name: str) -> None:
        assert self.broker.vhost.delete_exchange(name) == (name in self.exchanges)
        self.forget_exchange(name)

    @rule(name=queue_names)
    def declare_queue(self, name: str) -> None:
        self.queues[name] = self.broker.vhost.declare_queue(name, is_durable=True)

    @rule(name=queue_names)
    def delete_queue(self, name: str) -> None:
        if name in self.queues:
            self.broker.vhost.delete_queue(self.queues.pop(name))
            self.unbind_all([binding for binding in self.bindings if binding[1] == name])

    @precondition(lambda self: self.exchanges)
    @rule(data=st.data(), patterns=st.lists(patterns, min_size=1, max_size=3))
    def bind(self, data: st.DataObject, patterns: list[str]) -> None:
        source = data.draw(st.sampled_from(sorted(self.exchanges)), label="source")
        destination = data.draw(st.sampled_from(sorted({*self.exchanges, *self.queues})), label="destination")
        for pattern in patterns:
            self.bindings.add((source, destination, pattern))
            self.broker.vhost.bind(self.exchange(source), self.destination(destination), pattern)

    @precondition(lambda self: self.bindings)
    @rule(data=st.data())
    def unbind(self, data: st.DataObject) -> None:
        binding = data.draw(st.sampled_from(sorted(self.bindings)), label="binding")
        source, destination, pattern = binding
        assert self.broker.vhost.unbind(self.exchange(source), self.destination(destination), pattern)
        self.unbind_all([binding])

    @rule()
    def restart(self) -> None:
        self.crash()
        self.queues = {name: self.broker.vhost.queue(name) for name in self.queues}

    # Invariants

    @invariant()
    def messages_are_routed_as_in_the_model(self) -> None:
        for exchange in ("", *self.exchanges):
            for key in KEYS:
                expected = self.expected_queues(exchange, key)
                verdict = self.broker.publish(key, exchange=exchange)
                assert verdict is (Verdict.TAKEN if expected else Verdict.UNROUTED)
                assert {name: len(queue) for name, queue in self.queues.items() if len(queue)} == dict.fromkeys(
                    expected, 1
                )
                for queue in self.queues.values():
                    queue.drops.purge()

    @invariant()
    def exchanges_and_bindings_match_the_model(self) -> None:
        named = {name for name in self.broker.vhost.exchange_by_name if name and not name.startswith("amq.")}
        assert named == set(self.exchanges)
        bound = {(each.source.name, each.destination.name, each.routing_key) for each in self.broker.vhost.bindings}
        assert bound == self.bindings

    # Model

    def expected_queues(self, start: str, key: str) -> set[str]:
        """Return the names of the queues that a message should reach."""
        reached: set[str] = set()
        seen: set[str] = set()
        to_visit = [start]
        while to_visit:
            name = to_visit.pop()
            if name in self.queues:
                reached.add(name)
            elif name not in seen:
                seen.add(name)
                to_visit += self.next_destinations(name, key)
        return reached

    def next_destinations(self, name: str, key: str) -> list[str]:
        if name == "":
            return [key] if key in self.queues else []
        if name not in self.exchanges:
            return []
        exchange = self.exchanges[name]
        destinations = [
            destination
            for source, destination, pattern in self.bindings
            if source == name and matches(exchange.type, pattern, key)
        ]
        return destinations if destinations or exchange.alternate is None else [exchange.alternate]

    def unbind_all(self, gone: list[tuple[str, str, str]]) -> None:
        """Remove bindings, and auto-delete exchanges without other bindings (R28)."""
        self.bindings.difference_update(gone)
        for source in {binding[0] for binding in gone}:
            if self.exchanges[source].is_auto_delete and not any(binding[0] == source for binding in self.bindings):
                self.forget_exchange(source)

    def forget_exchange(self, name: str) -> None:
        if name in self.exchanges:
            touching = [binding for binding in self.bindings if name in binding[:2]]
            self.bindings.difference_update(touching)
            del self.exchanges[name]
            self.unbind_all([binding for binding in touching if binding[0] in self.exchanges])

    def exchange(self, name: str) -> Exchange:
        return self.broker.vhost.exchange(name)

    def destination(self, name: str) -> Exchange | Queue:
        return self.broker.vhost.queue(name) if name in self.queues else self.exchange(name)


TestRoutingMachine = RoutingMachine.TestCase
TestRoutingMachine.settings = settings(max_examples=examples(75), stateful_step_count=30, deadline=None)
