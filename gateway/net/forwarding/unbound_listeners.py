"""The listeners of a node that binds no port: all of its clients come from the nodes that bind them."""

from collections.abc import Mapping
from typing import Any

from twisted.internet.protocol import Factory

from gateway.kernel.clock import Clock
from gateway.net.listeners import Listeners


class UnboundListeners(Listeners):
    """Has the factories of the listeners at the ``addresses`` of this machine, which another part binds."""

    def __init__(self, reactor: Any, clock: Clock, addresses: Mapping[str, tuple[str, int]]) -> None:
        super().__init__(reactor, clock, "")
        self.addresses = dict(addresses)
        self._factories: dict[str, Any] = {}  # Any: Twisted's factories share no type

    def bind(self, name: str, port: int, host: str = "") -> None:
        """Do nothing: it is bound."""

    def serve(
        self,
        name: str,
        factory: Factory,
        tls: Any = None,
        *,
        is_proxied: bool = False,
        passed_on: Factory | None = None,
    ) -> None:
        """Take connections that are passed on: their layers end where the port is bound."""
        self._factories[name] = passed_on or factory

    def suspend(self, name: str) -> None:
        """Take no connections of a listener."""
        self.suspended[name] = self.addresses.pop(name)

    def resume(self, name: str) -> None:
        """Take connections of it again."""
        self.addresses[name] = self.suspended.pop(name)

    def served(self) -> dict[str, Any]:
        """Return the factories of the listeners that take connections."""
        return {name: factory for name, factory in self._factories.items() if name in self.addresses}

    def close(self) -> None:
        """Take no connections any more."""
        self._factories.clear()
