"""A protocol that the broker serves: its name, its message format, its listeners, and what the settings make of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from gateway.access import Access
from gateway.config import Settings
from gateway.kernel.broker.broker import Broker
from gateway.kernel.clock import Clock
from gateway.kernel.messages.message import HeaderFormat
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.net.forwarding.resumable import Resumable
from gateway.net.not_ready import NotReadyFactory
from gateway.net.turn import Turn
from gateway.net.websocket import Dialect, WebSocketFactory
from gateway.node.http import web_origins


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of a node that protocols share.

    ``access_of`` returns the access checks of a virtual host; ``login_access`` those of a login whose virtual host is
    not known yet; ``may_authenticate_in_vhost`` tells whether another virtual host's plugins may accept a user whom
    these refuse.
    """

    broker: Broker
    turn: Turn
    access_of: Callable[[str], Access]
    login_access: Callable[[], Access]
    may_authenticate_in_vhost: Callable[[], bool]


class ServedProtocol(ABC):
    """One protocol of a running broker.

    Settings have a table ``name``, and one for each further listener: ``web_name``, ``names`` and ``web_names``. A
    protocol that is served over WebSocket has a ``dialect``.
    """

    name: ClassVar[str]
    format: ClassVar[HeaderFormat]
    dialect: ClassVar[Dialect | None] = None

    def __init__(self, services: Services, settings: Settings) -> None:
        self.services = services
        self.settings = settings
        self._web_factory: WebSocketFactory | None = None

    @staticmethod
    @abstractmethod
    def refusal(data: bytes, reason: str) -> bytes | None:
        """Return what a client gets that connects before the broker is ready; ``data`` is all that it sent so far.

        ``None`` waits for more of it, ``b""`` closes without an answer.
        """

    @staticmethod
    @abstractmethod
    def resumable(settings: Settings) -> Resumable:
        """Return what remembers a connection that is passed to the leader of a cluster."""

    @abstractmethod
    def factory(self, *, is_tls: bool) -> Any:
        """Return Twisted's factory of connections, the same one each time."""

    def apply(self, settings: Settings) -> None:
        """Apply settings that changed while the broker runs: they hold for connections to come."""
        self.settings = settings

    def vhost_added(self, vhost: VirtualHost) -> None:  # noqa: B027 - a hook, not a duty
        """Called for each virtual host that is created or restored."""

    def factory_of(self, listener: "ProtocolListener") -> Any:
        """Return the factory of one listener."""
        plain = self.factory(is_tls=listener.is_tls)
        if not listener.is_web:
            return plain
        if self._web_factory is None:  # shared by its listeners, and so is the bound of open handshakes
            self._web_factory = self.web_factory(plain, self.services.broker.clock, self.settings)
        return self._web_factory

    @classmethod
    def web_factory(cls, factory: Any, clock: Clock, settings: Settings) -> WebSocketFactory:
        """Return a factory of WebSockets whose payload is the protocol's bytes."""
        assert cls.dialect is not None
        web, timeout_s = getattr(settings, f"web_{cls.name}"), getattr(settings, cls.name).login_timeout_s
        return WebSocketFactory(factory, cls.dialect, web.path, clock, timeout_s, web_origins(web))


@dataclass(frozen=True, slots=True)
class ProtocolListener:
    """One port of a protocol: plain or with TLS, over TCP or WebSocket."""

    protocol: type[ServedProtocol]
    is_web: bool
    is_tls: bool

    @property
    def name(self) -> str:
        """The table of its settings, which listings show too: ``amqp``, ``web_mqtts``."""
        return f"{self._plain_name}s" if self.is_tls else self._plain_name

    def port(self, settings: Settings) -> int | None:
        """Return the port; ``None`` if the listener is off."""
        if self.is_tls and settings.tls.certificate is None:
            return None
        port: int | None = getattr(settings, self.name).port
        return port

    @property
    def bare_name(self) -> str:
        """The name of the listener for the same bytes without WebSocket: ``mqtt``, ``mqtts``."""
        return f"{self.protocol.name}s" if self.is_tls else self.protocol.name

    def layered(self, factory: Any, clock: Clock, settings: Settings) -> Any:
        """Return the factory behind TLS, for the protocol's bytes of this listener: with WebSocket, if it uses that."""
        return self.protocol.web_factory(factory, clock, settings) if self.is_web else factory

    def not_ready_factories(self, clock: Clock, settings: Settings, reason: Callable[[], str]) -> tuple[Any, Any]:
        """Return the factories of refusals while the broker starts, without WebSocket and with it."""
        plain = NotReadyFactory(lambda data: self.protocol.refusal(data, reason()), clock)
        return plain, self.layered(plain, clock, settings)

    def is_proxied(self, settings: Settings) -> bool:
        """Whether its connections begin with a PROXY header."""
        return bool(getattr(settings, self._plain_name).proxy_protocol)

    @property
    def _plain_name(self) -> str:
        return f"web_{self.protocol.name}" if self.is_web else self.protocol.name


def listeners_of(protocol: type[ServedProtocol]) -> Iterator[ProtocolListener]:
    """Yield the listeners that a protocol can have."""
    for is_web in (False, True) if protocol.dialect is not None else (False,):
        for is_tls in (False, True):
            yield ProtocolListener(protocol, is_web, is_tls)
