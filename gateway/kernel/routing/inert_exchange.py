"""Exchanges whose type cannot be had: they are kept with their bindings and route nothing until the type is back."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gateway.kernel.messages.message import Message

if TYPE_CHECKING:
    from gateway.kernel.routing.binding import Binding, Destination


class InertType:
    """Takes the place of an exchange type that no plugin supplies, or that refuses the exchange."""

    def bind(self, binding: "Binding") -> None:
        """Leave the binding to the exchange, which keeps it."""

    def unbind(self, binding: "Binding") -> None:
        """Leave the binding to the exchange, which forgets it."""

    def route(self, message: Message) -> "Iterable[Destination]":
        """Route nowhere."""
        return ()
