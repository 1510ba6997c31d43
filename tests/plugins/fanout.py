"""A correct exchange type for tests to change."""

from collections.abc import Iterable

from gateway.api import Arguments, Binding, Destination, Message


class CorrectFanout:
    """Routes to all destinations, in the order of their bindings."""

    def __init__(self, arguments: Arguments) -> None:
        self.bindings: list[Binding] = []

    def bind(self, binding: Binding) -> None:
        self.bindings.append(binding)

    def unbind(self, binding: Binding) -> None:
        self.bindings.remove(binding)

    def route(self, message: Message) -> Iterable[Destination]:
        return [binding.destination for binding in self.bindings]
