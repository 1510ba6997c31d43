"""Connections to AMQP 0-9-1 brokers as a client, with pika's adapter for Twisted."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pika
from pika.adapters.twisted_connection import TwistedChannel, TwistedProtocolConnection
from pika.exceptions import AMQPConnectionError
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.protocol import Factory
from twisted.internet.ssl import (
    Certificate,
    CertificateOptions,
    PrivateCertificate,
    optionsForClientTLS,
    trustRootFromCertificates,
)
from twisted.python.failure import Failure

from gateway.bridges.broker_uri import BrokerUri
from gateway.version import VERSION

#: Bytes that are given to pika at once, and the seconds for which it may work in one turn of the event loop. pika takes
#: about 0.1 ms for a small message, and a socket may hold 64 KiB of them.
_SLICE_BYTES: Final = 4096
_SLICE_S: Final = 0.002

#: Time limit for the TCP connection, and for the AMQP handshake after it, in seconds.
_CONNECT_TIMEOUT_S: Final = 30
_HANDSHAKE_TIMEOUT_S: Final = 20

# The errors of connections are logged by their bridges, once; pika logs each of them several times.
logging.getLogger("pika").setLevel(logging.CRITICAL)

#: The authentication of a connection to this broker itself: its user is the bridge.
LOCAL_USER: Final = "gateway-bridge"

LocalConnect = Callable[[Factory, bool], None]
"""Connects a client's factory with this broker; the flag is whether the client logs in with a user's password."""


class AmqpChannel(TwistedChannel):  # type: ignore[misc]  # pika has no types
    """A channel whose calls may be cancelled.

    pika keeps a cancelled call, and fails it again when the channel closes: an exception in the middle of its input.
    """

    _calls: set[Deferred[Any]]

    def _on_channel_closed(self, channel: Any, reason: Exception | None) -> None:
        """Fail the calls that wait for an answer."""
        self._calls = {call for call in self._calls if not call.called}
        super()._on_channel_closed(channel, reason)


class AmqpConnection(TwistedProtocolConnection):  # type: ignore[misc]  # pika has no types
    """One connection to a broker. It works on its input in slices, so that other clients are served in between."""

    ready: Any
    _calls: set[Deferred[Any]]

    def __init__(self, parameters: Any, reactor: Any) -> None:  # Any: pika and Twisted have no types
        super().__init__(parameters, custom_reactor=reactor)
        self._clock = reactor
        self._unread = b""
        self._next: Any = None
        self._is_paused = False
        self._is_reading = True

    def dataReceived(self, data: bytes) -> None:
        """Take input."""
        self._unread += data
        if self._next is None and not self._is_paused:
            self._work()

    def connectionLost(self, reason: Any = None) -> None:
        """Take what was received before the connection ended, then end."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
        unread, self._unread = self._unread, b""
        if unread:
            super().dataReceived(unread)
        # pika replaces the reason of the peer's close by "closed cleanly", the end of the transport
        cause = self._impl._error
        super().connectionLost(reason if cause is None else Failure(cause))  # type: ignore[no-untyped-call]  # Twisted's

    def pause(self, is_paused: bool) -> None:
        """Stop receiving, or continue."""
        self._is_paused = is_paused
        if not is_paused and self._unread and self._next is None:
            self._next = self._clock.callLater(0, self._work)
        self._read_transport()

    def _work(self) -> None:
        self._next = None
        ends_s = self._clock.seconds() + _SLICE_S
        while self._unread and not self._is_paused:
            data, self._unread = self._unread[:_SLICE_BYTES], self._unread[_SLICE_BYTES:]
            super().dataReceived(data)
            if self._unread and self._clock.seconds() >= ends_s:
                self._next = self._clock.callLater(0, self._work)
                break
        self._read_transport()

    def _read_transport(self) -> None:
        """Read from the socket when nothing is left over."""
        is_wanted = not self._unread and not self._is_paused
        if is_wanted == self._is_reading or self.transport is None:
            return
        self._is_reading = is_wanted
        if is_wanted:
            self.transport.resumeProducing()
        else:
            self.transport.pauseProducing()

    def _on_connection_failed(self, connection: Any, error: Exception | None = None) -> None:
        """Report why the connection was refused; pika's own method leaves the reason out."""
        ready, self.ready = self.ready, None
        if ready is not None:
            ready.errback(error or AMQPConnectionError("connection refused"))

    def _on_connection_closed(self, connection: Any, error: Exception) -> None:
        """Fail the channels that are not open yet, but for cancelled ones."""
        self._calls = {call for call in self._calls if not call.called}
        super()._on_connection_closed(connection, error)

    async def open_channel(self) -> AmqpChannel:
        """Return a new channel. :raises Exception: pika's, when the connection ends before."""
        opened: Deferred[Any] = Deferred()
        self._calls.add(opened)
        opened.addCallback(self._clear_call, opened)
        self._impl.channel(None, opened.callback)
        return AmqpChannel(await opened)

    def leave(self) -> None:
        """Close the connection after all output was sent; safe to call twice."""
        if self.is_open:
            self.pause(False)  # the peer's answer to the close must be read
            self.transport.unregisterProducer()
            self.close()

    def abort(self) -> None:
        """End the connection without a handshake."""
        if self.transport is not None:
            self.transport.abortConnection()


class _OneConnection(Factory):
    """The factory of a single connection."""

    noisy = False

    def __init__(self, connection: AmqpConnection) -> None:
        self._connection = connection

    def buildProtocol(self, addr: Any) -> AmqpConnection:
        """Return the connection."""
        return self._connection


class AmqpDialer:
    """Opens connections. ``connect_local`` reaches this broker."""

    def __init__(self, reactor: Any, connect_local: LocalConnect) -> None:
        self._reactor = reactor
        self._connect_local = connect_local

    async def connect(self, uri: BrokerUri, name: str, vhost: str) -> AmqpConnection:
        """Return an open connection. ``name`` is shown in the peer's listings; ``vhost`` is for a URI without one.

        Raises the errors of pika and Twisted.
        """
        connection = AmqpConnection(connection_parameters(uri, name, vhost), self._reactor)
        ready = connection.ready
        if uri.is_local:
            self._connect_local(_OneConnection(connection), bool(uri.username))
        else:
            timeout_s = uri.number("connection_timeout", _CONNECT_TIMEOUT_S * 1000) / 1000
            endpoint: Any = HostnameEndpoint(self._reactor, uri.host, uri.port, timeout=timeout_s)
            if uri.has_tls:
                endpoint = wrapClientTLS(tls_options(uri), endpoint)
            await endpoint.connect(_OneConnection(connection))
        ready.addTimeout(_HANDSHAKE_TIMEOUT_S, self._reactor)
        try:
            await ready
        except BaseException:
            connection.abort()
            raise
        return connection

    async def connect_first(self, uris: Sequence[BrokerUri], name: str, vhost: str) -> tuple[AmqpConnection, BrokerUri]:
        """Return a connection to the first broker that accepts one. :raises Exception: the last one's error."""
        for uri in uris[:-1]:
            try:
                return await self.connect(uri, name, vhost), uri
            except Exception:  # any failure of this broker makes it try the next one
                continue
        return await self.connect(uris[-1], name, vhost), uris[-1]


def connection_parameters(uri: BrokerUri, name: str, vhost: str) -> Any:
    """Return pika's parameters of a connection. Without a user, it is ``guest``; locally, the bridge itself."""
    external = uri.options.get("auth_mechanism") == "external"
    username = uri.username or (LOCAL_USER if uri.is_local else "guest")
    password = uri.password if uri.username else "guest"
    options: dict[str, object] = {}
    if uri.is_local:
        options["heartbeat"] = 0
    elif "heartbeat" in uri.options:
        options["heartbeat"] = uri.number("heartbeat", 0)
    if "channel_max" in uri.options:
        options["channel_max"] = uri.number("channel_max", 0) or None
    return pika.ConnectionParameters(
        virtual_host=vhost if uri.vhost is None else uri.vhost,
        credentials=pika.credentials.ExternalCredentials() if external else pika.PlainCredentials(username, password),
        client_properties={"product": "gateway", "version": VERSION, "connection_name": name},
        **options,
    )


def tls_options(uri: BrokerUri) -> Any:
    """Return the TLS options of a connection: the peer's certificate is verified unless the URI says otherwise.

    :raises OSError: when a file cannot be read.
    """
    options: Mapping[str, str] = uri.options
    client = None
    if "certfile" in options:
        pem = Path(options["certfile"]).read_bytes() + b"\n" + Path(options["keyfile"]).read_bytes()
        client = PrivateCertificate.loadPEM(pem)  # type: ignore[no-untyped-call]  # Twisted's
    if options.get("verify") == "verify_none":
        own = {} if client is None else {"privateKey": client.privateKey.original, "certificate": client.original}
        return CertificateOptions(verify=False, **own)
    trusted = None
    if "cacertfile" in options:
        pems = Path(options["cacertfile"]).read_text().split("-----BEGIN CERTIFICATE-----")[1:]
        trusted = trustRootFromCertificates(  # type: ignore[no-untyped-call]  # Twisted's
            [Certificate.loadPEM(f"-----BEGIN CERTIFICATE-----{pem}".encode()) for pem in pems]
        )
    name = options.get("server_name_indication") or uri.host
    return optionsForClientTLS(name, trustRoot=trusted, clientCertificate=client)


def ended(connection: AmqpConnection, lost: Callable[[BaseException | None], None]) -> None:
    """Call ``lost`` with the error when an open connection ends."""
    closed: Deferred[Any] = connection.closed
    closed.addBoth(lambda result: lost(getattr(result, "value", result)))
