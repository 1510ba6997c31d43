"""All bindings of a virtual host, found by where they start and by where they end."""

from collections.abc import Iterator

from gateway.kernel.binding import Binding, Destination
from gateway.kernel.exchange import Exchange
from gateway.kernel.message import Arguments


class Bindings:
    """Owns the bindings of one virtual host and keeps the index of each exchange's type in step."""

    def __init__(self) -> None:
        self._by_source: dict[Exchange, dict[object, Binding]] = {}
        self._by_destination: dict[Destination, dict[Binding, None]] = {}

    def __iter__(self) -> Iterator[Binding]:
        for bindings in self._by_source.values():
            yield from bindings.values()

    def find(self, source: Exchange, destination: Destination, routing_key: str, arguments: Arguments) -> Binding | None:
        """Return the binding that is this rule, if there is one."""
        key = Binding(source, destination, routing_key, arguments).key()
        return self._by_source.get(source, {}).get(key)

    def add(self, binding: Binding) -> None:
        """Let a new binding take effect. :raises PreconditionFailed: when the exchange type cannot use it."""
        binding.source.type.bind(binding)
        binding.source.had_binding = True
        self._by_source.setdefault(binding.source, {})[binding.key()] = binding
        self._by_destination.setdefault(binding.destination, {})[binding] = None

    def remove(self, binding: Binding) -> None:
        """Let a binding take effect no longer."""
        binding.source.type.unbind(binding)
        del self._by_source[binding.source][binding.key()]
        del self._by_destination[binding.destination][binding]
        if not self._by_source[binding.source]:
            del self._by_source[binding.source]
        if not self._by_destination[binding.destination]:
            del self._by_destination[binding.destination]

    def of(self, source: Exchange) -> list[Binding]:
        """Return the bindings that start at an exchange."""
        return list(self._by_source.get(source, {}).values())

    def to(self, destination: Destination) -> list[Binding]:
        """Return the bindings that end at a queue or exchange."""
        return list(self._by_destination.get(destination, ()))
