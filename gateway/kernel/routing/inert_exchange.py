"""Exchanges whose type is unavailable: they keep their bindings and route nothing until the type is available again."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gateway.kernel.messages.message import Message

if TYPE_CHECKING:
    from gateway.kernel.routing.binding import Binding, Destination


class InertType:
    """Replaces an exchange type that no plugin supplies, or that refuses the exchange."""

    def bind(self, binding: "Binding") -> None:
        """Do nothing; the exchange keeps the binding."""

    def unbind(self, binding: "Binding") -> None:
        """Do nothing; the exchange removes the binding."""

    def route(self, message: Message) -> "Iterable[Destination]":
        """Return no destinations."""
        return ()
