"""A client of a NATS cluster for Twisted: one connection at a time, another server after a failure."""

import os
import random
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.protocol import Factory
from twisted.logger import Logger

from gateway_jetstream.client.addresses import ServerAddress
from gateway_jetstream.client.backoff import Backoff
from gateway_jetstream.client.conversation import NatsConversation
from gateway_jetstream.client.options import ClientOptions, NatsTls
from gateway_jetstream.client.output import NatsOutput
from gateway_jetstream.client.protocol import NatsConnection
from gateway_jetstream.client.requests import Answered, Requests, fire
from gateway_jetstream.client.subscriptions import NatsSubscription, NatsSubscriptions, OnMessage
from gateway_jetstream.client.tls import tls_context
from gateway_jetstream.codec import encoder
from gateway_jetstream.codec.frames import Delivered, Info
from gateway_jetstream.errors import CannotConnect, Disconnected, NatsError, TooMuch

_log: Final = Logger()


class NatsClient:
    """Publishes, subscribes and requests. Owns its connection, which it replaces until it is stopped.

    All calls are made on the reactor's thread. What is published without a connection is refused with
    :class:`Disconnected`, not kept. Requests that wait when a connection ends fail with it; subscriptions continue on
    the next one, and miss what was published meanwhile.

    :param write: writes to a non-blocking socket; takes its descriptor and bytes as ``os.write`` does.
    """

    def __init__(
        self,
        reactor: Any,  # Any: Twisted's interfaces are not types
        options: ClientOptions,
        *,
        random_number: Callable[[], float] = random.random,
        write: Callable[[int, bytes], int] = os.write,
    ) -> None:
        self._reactor = reactor
        self.options = options
        self._write = write
        self._servers = list(options.servers)
        #: The clients of a cluster begin with different servers.
        self._turn = int(random_number() * len(self._servers))
        self._backoff = Backoff(options.first_backoff_s, options.longest_backoff_s, random_number)
        self._connection: NatsConnection | None = None
        self._attempt: NatsConnection | None = None
        self._is_stopped = True
        self._retry_call: Any = None
        self._last_reason = "not connected yet"
        self._openings: list[Deferred[None]] = []
        self._subscriptions = NatsSubscriptions(self._send_if_open)
        inbox = f"_INBOX.{secrets.token_hex(11)}."
        self._requests = Requests(reactor, inbox, options.most_requests)
        self._subscriptions.add(f"{inbox}*", "", self._requests.take)
        #: Called after each connection was opened, with the server's address, and after it ended, with the reason.
        self.on_opened: list[Callable[[str], None]] = []
        self.on_ended: list[Callable[[str], None]] = []

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    @property
    def server(self) -> str:
        """The address of the connected server; empty without one."""
        return "" if self._connection is None else self._connection.server

    @property
    def info(self) -> Info:
        """The INFO of the connected server. :raises Disconnected: without a connection."""
        return self._open_connection("").conversation.info

    def start(self) -> None:
        """Begin to connect."""
        self._is_stopped = False
        self._connect()

    def stop(self) -> None:
        """Close the connection after everything was sent, and make no other one; safe to call twice."""
        self._is_stopped = True
        if self._retry_call is not None:
            self._retry_call.cancel()
            self._retry_call = None
        if self._attempt is not None:
            self._attempt.close("closed by this client")
        if self._connection is not None:
            self._connection.leave()
        self._fail_openings()

    async def opened(self, timeout_s: float) -> None:
        """Wait for a connection. :raises CannotConnect: with the last reason, if there is none in time."""
        if self._connection is not None:
            return
        opening: Deferred[None] = Deferred()
        self._openings.append(opening)
        call = self._reactor.callLater(timeout_s, self._fail_openings)
        try:
            await opening
        finally:
            if call.active():
                call.cancel()

    def publish(self, subject: str, payload: bytes, *, reply: str = "", header: bytes = b"") -> None:
        """Send a message, at most once. :raises Disconnected: without a connection. :raises TooMuch: beyond a limit."""
        encoder.checked_subject(subject)
        if reply:
            encoder.checked_subject(reply)
        self._publish(subject, reply, header, payload)

    def request(
        self, subject: str, payload: bytes, *, header: bytes = b"", timeout_s: float | None = None
    ) -> "Deferred[Delivered]":
        """Send a request at the end of this turn; return its answer, or a :class:`NatsError`."""
        answer: Deferred[Delivered] = Deferred()
        timeout_s = self.options.request_timeout_s if timeout_s is None else timeout_s
        self._ask(subject, payload, header, timeout_s, partial(fire, answer), at_once=False)
        return answer

    def ask(self, subject: str, payload: bytes, header: bytes, timeout_s: float, answered: Answered) -> None:
        """Send a request at once; ``answered`` is called later. :raises NatsError: if it was not sent."""
        self._ask(subject, payload, header, timeout_s, answered, at_once=True)

    def _ask(
        self, subject: str, payload: bytes, header: bytes, timeout_s: float, answered: Answered, *, at_once: bool
    ) -> None:
        encoder.checked_subject(subject)
        connection = self._open_connection(subject)
        reply = self._requests.add(subject, connection.server, timeout_s, answered)
        try:
            self._publish(subject, reply, header, payload, at_once)
        except NatsError:
            self._requests.withdraw(reply)
            raise

    def subscribe(self, subject: str, on_message: OnMessage, *, queue_group: str = "") -> NatsSubscription:
        """Give each message of a subject to ``on_message``; with a group, to one of its subscribers."""
        return self._subscriptions.add(subject, queue_group, on_message)

    def new_inbox(self) -> str:
        """Return a subject that no one else uses."""
        return f"_INBOX.{secrets.token_hex(11)}"

    def reconnect(self, reason: str) -> None:
        """Give the connection up, and make another one."""
        if self._connection is not None:
            self._connection.close(reason)

    # ---- What the connection reports -----------------------------------------------------------------------------

    def connection_opened(self, connection: NatsConnection) -> None:
        """Subscribe, then tell who waits."""
        self._attempt = None
        self._connection = connection
        self._backoff.reset()
        self._subscriptions.send_all()
        openings, self._openings = self._openings, []
        for each in openings:
            each.callback(None)
        for on_opened in tuple(self.on_opened):
            on_opened(connection.server)

    def connection_delivered(self, message: Delivered) -> None:
        """Pass a message on."""
        self._subscriptions.deliver(message)

    def connection_warned(self, connection: NatsConnection, text: str) -> None:
        """Log what the server refused."""
        _log.warn("NATS server {server} reports: {text}", server=connection.server, text=text)

    def connection_ended(self, connection: NatsConnection, reason: str) -> None:
        """Fail what waited, and connect again after a pause."""
        was_open = connection is self._connection
        self._attempt = None
        self._failed(connection.server, reason)
        if was_open:
            self._connection = None
            self._requests.fail(lambda each: Disconnected(reason, server=each.server, subject=each.subject))
            for on_ended in tuple(self.on_ended):
                on_ended(reason)

    # ---- Connecting ----------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        self._retry_call = None
        address = self._servers[self._turn % len(self._servers)]
        self._turn += 1
        endpoint = HostnameEndpoint(self._reactor, address.host, address.port, timeout=self.options.connect_timeout_s)
        factory: Any = Factory.forProtocol(lambda: self._new_connection(address))  # Any: as above
        connected: Deferred[Any] = endpoint.connect(factory)
        connected.addCallbacks(self._connected, lambda failure: self._failed(str(address), failure.getErrorMessage()))

    def _new_connection(self, address: ServerAddress) -> NatsConnection:
        options = self.options
        conversation = NatsConversation(
            options.name,
            address.uses_tls or options.tls is not None,
            lambda info: options.credentials.fields(address, info),
        )
        output = NatsOutput(self._reactor, str(address), conversation, options.most_output, self._write)
        connection = NatsConnection(
            self._reactor,
            self,
            str(address),
            conversation,
            output,
            lambda: tls_context(address.host, options.tls or NatsTls()),
            handshake_timeout_s=options.handshake_timeout_s,
            ping_interval_s=options.ping_interval_s,
        )
        self._attempt = connection
        return connection

    def _connected(self, connection: NatsConnection) -> None:
        if self._is_stopped:
            connection.close("closed by this client")

    def _failed(self, server: str, reason: str) -> None:
        """Note why there is no connection, and try the next server after a pause."""
        self._last_reason = f"{server}: {reason}"
        if not self._is_stopped and self._retry_call is None:
            self._retry_call = self._reactor.callLater(self._backoff.next_s(), self._connect)

    def _fail_openings(self) -> None:
        openings, self._openings = self._openings, []
        for each in openings:
            each.errback(CannotConnect(f"no connection to NATS: {self._last_reason}"))

    # ---- Sending -------------------------------------------------------------------------------------------------

    def _open_connection(self, subject: str) -> NatsConnection:
        if self._connection is None:
            raise Disconnected(f"no connection to NATS: {self._last_reason}", subject=subject)
        return self._connection

    def _publish(self, subject: str, reply: str, header: bytes, payload: bytes, at_once: bool = False) -> None:
        connection = self._open_connection(subject)
        most = connection.conversation.info.most_payload
        if len(header) + len(payload) > most:
            raise TooMuch(
                f"a message of {len(header) + len(payload)} bytes; the server takes {most}",
                server=connection.server,
                subject=subject,
            )
        connection.output.send(encoder.publish(subject, reply, header, payload), at_once)

    def _send_if_open(self, data: bytes) -> None:
        """Send what each new connection repeats."""
        if self._connection is not None:
            self._connection.output.send(data, at_once=False)
