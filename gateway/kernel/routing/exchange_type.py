"""The interface of exchange types, which plugins implement: an index of the bindings of one exchange."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeAlias

from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.routing.binding import Binding, Destination


class ExchangeType(Protocol):
    """How exchanges of one type choose: an index of bindings. One instance serves one exchange.

    ``bind`` and ``unbind`` come in pairs, each binding at most once at a time; the exchange keeps the list, the type
    only indexes. ``route`` is asked for messages published to the exchange and returns the destinations of the
    bindings that match, in any order; repeated ones are delivered to once. All calls come on the kernel's thread and
    must not block.
    """

    def bind(self, binding: Binding) -> None:
        """Take a binding into the index. :raises PreconditionFailed: when its arguments make no sense."""
        ...

    def unbind(self, binding: Binding) -> None:
        """Take a binding out of the index."""
        ...

    def route(self, message: Message) -> Iterable[Destination]:
        """Return where the message goes."""
        ...


ExchangeFactory: TypeAlias = Callable[[Arguments], ExchangeType]
"""Makes the type's half of one exchange from the declare arguments; may raise ``PreconditionFailed``.

A factory with a true attribute ``routes_by_key`` promises that its routes depend on the routing key and the bindings
alone; the router then asks once per key and remembers the answer until a binding changes.
"""


ExchangeTypes: TypeAlias = Mapping[str, ExchangeFactory]
