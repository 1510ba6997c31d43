"""A process with WebSocket listeners, for tests over real sockets: ``python -m tests.net.web_server``.

It prints a line ``NAME PORT`` for each listener, then the output of its protocols. ``amqp`` is a broker in memory,
``flood`` sends without limit, ``sink`` reads with a pause.
"""

import sys
from pathlib import Path
from typing import Any

from twisted.internet.protocol import Factory, Protocol

from gateway.config import TlsSettings
from gateway.net.certificates import tls_options
from gateway.net.clock import ReactorClock
from gateway.net.listeners import Listeners
from gateway.net.reactor import install
from gateway.net.turn import Turn
from gateway.net.websocket import Dialect, WebSocketFactory
from gateway_amqp.server import AmqpFactory
from gateway_memory import MemoryStore
from tests.protocols.amqp.dialogue import Gateway

DIALECT = Dialect(frozenset({"amqp"}), has_to_be_named=False, takes_text=False)
PIECE = bytes(64 * 1024)
FLOOD = 64 * 1024 * 1024
PAUSE_S = 1.0


def say(text: str) -> None:
    print(text, flush=True)


class Flood(Protocol):
    """Writes as much as the transport accepts, up to ``FLOOD`` bytes, and prints the number when it is paused."""

    def connectionMade(self) -> None:
        self.sent = 0
        self.is_paused = False
        self.transport.registerProducer(self, True)  # type: ignore[union-attr]
        self.resumeProducing()

    def resumeProducing(self) -> None:
        self.is_paused = False
        while not self.is_paused and self.sent < FLOOD:
            self.sent += len(PIECE)
            self.transport.write(PIECE)  # type: ignore[union-attr]
        if self.sent >= FLOOD:
            self.transport.unregisterProducer()  # type: ignore[union-attr]
            self.transport.loseConnection()  # type: ignore[union-attr]

    def pauseProducing(self) -> None:
        self.is_paused = True
        say(f"paused {self.sent}")

    def stopProducing(self) -> None:
        pass


class Sink(Protocol):
    """Stops reading at the first bytes, resumes after a while, and prints the numbers of bytes before the pause and in
    total.
    """

    def connectionMade(self) -> None:
        self.size = 0

    def dataReceived(self, data: bytes) -> None:
        if not self.size:
            self.transport.pauseProducing()  # type: ignore[union-attr]
            reactor.callLater(PAUSE_S, self.go_on)
        self.size += len(data)

    def go_on(self) -> None:
        say(f"before {self.size}")
        self.transport.resumeProducing()  # type: ignore[union-attr]

    def connectionLost(self, reason: Any = None) -> None:
        say(f"all {self.size}")


def amqp() -> AmqpFactory:
    store = MemoryStore(defer=lambda call: reactor.callLater(0, call))
    gateway = Gateway(store=store)
    return AmqpFactory(gateway.settings, Turn(gateway.broker.journal, reactor.loop))


def main(certificate: str, key: str) -> None:
    clock = ReactorClock(reactor, lambda: None)
    listeners = Listeners(reactor, clock, "127.0.0.1")
    tls = tls_options(TlsSettings(certificate=Path(certificate), key=Path(key)))

    def web(factory: Factory) -> WebSocketFactory:
        return WebSocketFactory(factory, DIALECT, "/ws", clock, 10)

    shared = amqp()
    listeners.listen("plain", 0, web(shared))
    listeners.listen("tls", 0, web(shared), tls)
    listeners.listen("proxied", 0, web(shared), is_proxied=True)
    listeners.listen("proxied-tls", 0, web(shared), tls, is_proxied=True)
    for name, protocol in (("flood", Flood), ("sink", Sink)):
        listeners.listen(name, 0, web(Factory.forProtocol(protocol)))
        listeners.listen(f"{name}-tls", 0, web(Factory.forProtocol(protocol)), tls)
    for name, (_, port) in listeners.addresses.items():
        say(f"{name} {port}")
    say("ready")
    reactor.run()


if __name__ == "__main__":
    reactor: Any = install()
    main(*sys.argv[1:])
