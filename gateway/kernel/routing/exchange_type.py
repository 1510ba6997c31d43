"""The interface of exchange types, which plugins implement: an index of the bindings of one exchange."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.routing.binding import Binding, Destination
from gateway.kernel.routing.kept_messages import KeptMessages


class LongRoute:
    """An answer of ``ExchangeType.route`` that takes long to find: the matches among very many bindings.

    ``find`` returns steps that yield destinations, and ``None`` after each part of the work, where other clients are
    served and bindings may change. Each part takes less than half a millisecond.
    """

    __slots__ = ("find",)

    def __init__(self, find: Callable[[], Iterator[Destination | None]]) -> None:
        self.find = find

    def __iter__(self) -> Iterator[Destination]:
        """Find all destinations at once."""
        return (destination for destination in self.find() if destination is not None)


class ExchangeType(Protocol):
    """An index of bindings that selects the destinations of a message. One instance serves one exchange.

    ``bind`` and ``unbind`` come in pairs, each binding at most once at a time; the exchange keeps the list of bindings.
    ``route`` returns the destinations of the matching bindings of a published message, in any order; duplicates are
    delivered once. All calls are made on the kernel's thread and must not block: a type that examines thousands of
    bindings for a message returns a ``LongRoute``.

    A type whose ``route`` changes its own state also has a method ``peek`` with the same parameter and result, and
    without the change: an explanation of a route calls it instead.
    """

    def bind(self, binding: Binding) -> None:
        """Add a binding to the index. :raises PreconditionFailed: when its arguments are invalid."""
        ...

    def unbind(self, binding: Binding) -> None:
        """Remove a binding from the index."""
        ...

    def route(self, message: Message) -> Iterable[Destination]:
        """Return the destinations of a message."""
        ...


class KeepingType(ExchangeType, Protocol):
    """An exchange type that keeps messages and hands some of them to each new destination: all three methods or none.

    Exceptions are contained as in ``route``: the message is not kept, or the destination gets none. ``route`` is called
    for every message then, so ``routes_by_key`` and ``routes_by_headers`` have no effect.
    """

    def attach(self, kept: KeptMessages) -> None:
        """Set where to keep messages. Called before any binding or message, and again when plugins are replaced.

        After a restart ``kept`` gets its messages after this call and before the first message is published.
        """
        ...

    def published(self, message: Message) -> None:
        """Keep a message, or not. Called once per message that the exchange gets, before it is routed."""
        ...

    def bound(self, binding: Binding) -> Iterable[Message]:
        """Return the messages for the destination of a new binding, in order; no other destination gets them.

        Called after ``bind`` when a client creates a binding, not when a binding is restored.
        """
        ...


ExchangeFactory: TypeAlias = Callable[[Arguments], ExchangeType]
"""Builds the type's part of one exchange from the declare arguments; may raise ``PreconditionFailed``.

A factory, or an object that it built, with a true attribute ``routes_by_key`` declares that its routes depend only on
the routing key and the bindings; the router then caches them until a binding changes. ``routes_by_headers`` declares
the same of the message's properties, headers among them. The object's attribute counts if both have it.
"""


class RoutesBy(NamedTuple):
    """The declared dependence of the routes of an exchange type: besides the bindings only on the routing ``key``, or
    only on the properties with the ``headers``.
    """

    key: bool = False
    headers: bool = False


def routes_by(type: ExchangeType, factory: ExchangeFactory) -> RoutesBy:
    """Return what an exchange type or its factory declares."""
    by_key = getattr(type, "routes_by_key", getattr(factory, "routes_by_key", False))
    by_headers = getattr(type, "routes_by_headers", getattr(factory, "routes_by_headers", False))
    return RoutesBy(bool(by_key), bool(by_headers))


ExchangeTypes: TypeAlias = Mapping[str, ExchangeFactory]
