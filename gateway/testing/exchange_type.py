"""The contract of ``gateway.api.ExchangeType`` as a check for any exchange type.

The destinations are stand-ins, so no broker runs. A type's own tests cover which destinations it chooses; this
check covers correct indexing, complete unbinding and robustness against any message.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Final

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Arguments, Message, Properties, Value
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.routing.binding import Binding, Destination
from gateway.kernel.routing.exchange_identity import ExchangeIdentity
from gateway.kernel.routing.exchange_type import ExchangeFactory, ExchangeType
from gateway.testing.keeping_type import check_keeping

#: Keys to bind with: empty, a number for types that read a weight, words, wildcards, the longest key AMQP allows.
BINDING_KEYS: Final = ("", "1", "dog", "dog.puppy", "dog.*", "#", "ключ", "k" * 255)
BINDING_ARGUMENTS: Final[Sequence[Arguments]] = ({}, {"x-match": "any", "animal": "dog"}, {"animal": None})

ROUTING_KEYS: Final = (*BINDING_KEYS, "dog.puppy.brown", "..", "*", "\x00", "DOG")
HEADERS: Final[Sequence[Mapping[str, Value]]] = (
    {},
    {"animal": "dog"},
    {"animal": None, "x-match": 1, "x-delay": -1, "": ""},
    {"n": 1 << 62, "f": 0.5, "d": Decimal("1.50"), "b": b"\xff", "t": datetime(2024, 2, 29, tzinfo=UTC), "y": True},
    {"list": ["a", 1, {"deep": [None]}], "table": {"inner": {}}},
)


class StandIn(ExchangeIdentity):
    """Stands in for a queue or an exchange; it only has a name."""

    def __init__(self, name: str) -> None:
        super().__init__("/", name, "stand-in", is_durable=True, is_auto_delete=False, is_internal=False, arguments={})

    def __repr__(self) -> str:
        return self.name


def check_exchange_type(
    factory: ExchangeFactory,
    arguments: Arguments | None = None,
    binding_keys: Sequence[str] = BINDING_KEYS,
    binding_arguments: Sequence[Arguments] = BINDING_ARGUMENTS,
) -> None:
    """Check an exchange type.

    :param arguments: the arguments with which exchanges are declared.
    :param binding_keys: keys to bind with, each with all of ``binding_arguments``. A type may refuse some of the
        bindings with ``PreconditionFailed``, but not all.
    :raises AssertionError: with a sentence that names the broken promise.
    """
    check = _Check(factory, arguments or {}, binding_keys, binding_arguments)
    check.an_exchange_without_bindings_routes_to_no_destination()
    check.only_bound_destinations_are_routed_to()
    check.exchanges_do_not_share_bindings()
    check.unbound_destinations_get_nothing(in_order=list)
    check.unbound_destinations_get_nothing(in_order=reversed)
    check.a_removed_binding_can_be_added_again()
    check.kept_messages_are_handed_over()
    if check.routes_by_key():
        check.messages_with_the_same_key_are_routed_alike()
        check.unbinding_restores_the_earlier_routing()
    if check.routes_by_headers():
        check.messages_with_the_same_headers_are_routed_alike()


def stand_in_binding(destination: StandIn, routing_key: str = "", arguments: Arguments | None = None) -> Binding:
    """Return a binding from a stand-in exchange to a stand-in destination."""
    return Binding(StandIn("source"), destination, routing_key, arguments or {})


def plain_message(routing_key: str = "", headers: Mapping[str, Value] | None = None, body: bytes = b"") -> Message:
    """Return a message with these headers and no other properties."""
    return Message("source", routing_key, native_header(Properties(headers=headers or {})), body)


class _Check:
    """The promises, one method each; ``_exchange`` creates the exchange under test."""

    def __init__(
        self,
        factory: ExchangeFactory,
        arguments: Arguments,
        binding_keys: Sequence[str],
        binding_arguments: Sequence[Arguments],
    ) -> None:
        self._factory = factory
        self._arguments = arguments
        self._messages = [plain_message(key, headers) for key in ROUTING_KEYS for headers in HEADERS]
        self._bindings = self._accepted(
            stand_in_binding(StandIn(f"destination {number}"), key, some)
            # Every key twice: several destinations with one key. Then each destination twice.
            for number, (key, some) in enumerate([(k, a) for k in binding_keys for a in binding_arguments] * 2)
        )
        if not self._bindings:
            raise AssertionError("Every binding was refused; give binding_keys and binding_arguments the type accepts.")
        self._bindings += self._accepted(self._second_bindings(binding_keys))

    def an_exchange_without_bindings_routes_to_no_destination(self) -> None:
        exchange = self._exchange([])
        for message in self._messages:
            self._expect_among(set(), self._route(exchange, message), message, "an exchange without bindings")

    def only_bound_destinations_are_routed_to(self) -> None:
        exchange = self._exchange([])
        bound = set()
        for binding in self._bindings:
            self._bind(exchange, binding)
            bound.add(binding.destination)
            self._expect_routes_among(bound, exchange, "an exchange with other bindings")

    def exchanges_do_not_share_bindings(self) -> None:
        first, second = self._exchange([]), self._exchange([])
        for binding in self._bindings:
            self._bind(first, binding)
        self._expect_routes_among(set(), second, "another exchange of the type")

    def unbound_destinations_get_nothing(self, in_order: Callable[[list[Binding]], Iterable[Binding]]) -> None:
        exchange = self._exchange(self._bindings)
        remaining = list(self._bindings)
        for binding in in_order(self._bindings):
            self._unbind(exchange, binding)
            remaining.remove(binding)
            bound = {other.destination for other in remaining}
            self._expect_routes_among(bound, exchange, f"after unbind of {_described(binding)} the exchange")

    def a_removed_binding_can_be_added_again(self) -> None:
        for binding in self._bindings:
            exchange = self._exchange([binding])
            self._unbind(exchange, binding)
            self._bind(exchange, binding)
            self._expect_routes_among({binding.destination}, exchange, "an exchange with one binding")

    def messages_with_the_same_key_are_routed_alike(self) -> None:
        exchange = self._exchange(self._bindings)
        for key in ROUTING_KEYS:
            expected = self._route(exchange, plain_message(key))
            for headers in HEADERS:
                for body in (b"", b"body"):
                    if self._route(exchange, plain_message(key, headers, body)) != expected:
                        raise AssertionError(
                            f"The type says routes_by_key, but messages with the key {key!r} were routed differently; "
                            f"one message had the headers {dict(headers)!r} and the body {body!r}."
                        )

    def messages_with_the_same_headers_are_routed_alike(self) -> None:
        exchange = self._exchange(self._bindings)
        for headers in HEADERS:
            expected = self._route(exchange, plain_message(headers=headers))
            for key in ROUTING_KEYS:
                for body in (b"", b"body"):
                    if self._route(exchange, plain_message(key, headers, body)) != expected:
                        raise AssertionError(
                            f"The type says routes_by_headers, but messages with the headers {dict(headers)!r} were "
                            f"routed differently; one message had the key {key!r} and the body {body!r}."
                        )

    def unbinding_restores_the_earlier_routing(self) -> None:
        """Check that unbinding restores the earlier routing, which must depend on the bindings alone."""
        gone = Random(1).sample(
            self._bindings, len(self._bindings) // 3
        )  # regular gaps would hide errors of modulus hashing
        kept = [binding for binding in self._bindings if binding not in gone]
        exchange = self._exchange(self._bindings)
        for binding in gone:
            self._unbind(exchange, binding)
        fresh = self._exchange(kept)
        for key in ROUTING_KEYS:
            message = plain_message(key)
            if self._route(exchange, message) != self._route(fresh, message):
                raise AssertionError(
                    f"The type says routes_by_key, but for the key {key!r} an exchange routes after an unbind "
                    "differently from one that never had the bindings."
                )

    def kept_messages_are_handed_over(self) -> None:
        check_keeping(lambda: self._exchange([]), self._messages, self._bindings)

    def routes_by_key(self) -> bool:
        """Whether the type promises that its routes depend only on the routing key and the bindings."""
        return bool(getattr(self._exchange([]), "routes_by_key", getattr(self._factory, "routes_by_key", False)))

    def routes_by_headers(self) -> bool:
        """Whether the type promises that its routes depend only on the properties and the bindings."""
        declared = getattr(self._factory, "routes_by_headers", False)
        return bool(getattr(self._exchange([]), "routes_by_headers", declared))

    # -- The steps, with the exceptions that are allowed in them ---------------------------------------------------

    def _accepted(self, bindings: Iterable[Binding]) -> list[Binding]:
        """Return the bindings the type accepts; refused ones must have no effect."""
        exchange = self._exchange([])
        accepted = []
        for binding in bindings:
            try:
                exchange.bind(binding)
            except PreconditionFailed:
                refused = binding.destination
                if any(refused in self._route(exchange, message) for message in self._messages):
                    raise AssertionError(f"bind() refused {_described(binding)} but routes to it.") from None
            except Exception as error:  # foreign code: any exception is a finding
                raise AssertionError(
                    f"bind() raised {error!r} for {_described(binding)}; only PreconditionFailed is allowed."
                ) from error
            else:
                accepted.append(binding)
        return accepted

    def _second_bindings(self, binding_keys: Sequence[str]) -> list[Binding]:
        """Return one more binding for each destination, with another key or other arguments."""
        return [
            Binding(first.source, first.destination, binding_keys[number % len(binding_keys)], {"second": number})
            for number, first in enumerate(self._bindings, start=1)
        ]

    def _exchange(self, bindings: Sequence[Binding]) -> ExchangeType:
        try:
            exchange = self._factory(self._arguments)
        except Exception as error:  # foreign code: any exception is a finding
            raise AssertionError(f"The factory raised {error!r} for the arguments {self._arguments!r}.") from error
        for binding in bindings:
            self._bind(exchange, binding)
        return exchange

    def _bind(self, exchange: ExchangeType, binding: Binding) -> None:
        try:
            exchange.bind(binding)
        except Exception as error:  # foreign code: any exception is a finding
            raise AssertionError(f"bind() accepted {_described(binding)} before, but now raised {error!r}.") from error

    def _unbind(self, exchange: ExchangeType, binding: Binding) -> None:
        try:
            exchange.unbind(binding)
        except Exception as error:  # foreign code: any exception is a finding
            raise AssertionError(f"unbind() raised {error!r} for {_described(binding)}, which was bound.") from error

    def _route(self, exchange: ExchangeType, message: Message) -> set[Destination]:
        try:
            return set(exchange.route(message))
        except Exception as error:  # foreign code: any exception is a finding
            raise AssertionError(
                f"route() raised {error!r} for the key {message.routing_key!r} and headers {dict(message.headers)!r}."
            ) from error

    def _expect_routes_among(self, bound: set[Destination], exchange: ExchangeType, subject: str) -> None:
        for message in self._messages:
            self._expect_among(bound, self._route(exchange, message), message, subject)

    @staticmethod
    def _expect_among(bound: set[Destination], found: set[Destination], message: Message, subject: str) -> None:
        if unbound := found - bound:
            raise AssertionError(
                f"For the key {message.routing_key!r} and headers {dict(message.headers)!r} {subject} routes to "
                f"{', '.join(sorted(map(repr, unbound)))}, which is not bound to it."
            )


def _described(binding: Binding) -> str:
    return f"the binding to {binding.destination!r} with key {binding.routing_key!r} and {dict(binding.arguments)!r}"
