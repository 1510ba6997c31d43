"""The protocol-independent server side of one connection: transport, time limits and flow control.

A protocol's ``server.py`` derives from ``PeerProtocol``, connects its ``io`` with a machine, and adds heartbeats and
the protocol's part of listings.
"""

from collections.abc import Iterable
from typing import Any, Final

from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from gateway.access import CertificateSubject
from gateway.kernel.broker.broker import Broker
from gateway.kernel.broker.connections import TICKS_PER_S, ChannelInfo, ConnectionInfo, PeerLoad, TlsInfo
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import ConsumedQueue
from gateway.logs import StructuredLog
from gateway.net.certificates import subject_of
from gateway.net.connection_io import ConnectionIO
from gateway.net.hangup import BROKEN, hang_up_of, keep_alive
from gateway.net.listeners import plain_host
from gateway.net.login_poller import promote
from gateway.net.machine import Machine, Phase
from gateway.net.outbox import FLOOD
from gateway.net.plain_transport import PlainTransport
from gateway.net.server_transport import ServerTransport
from gateway.net.socket_writer import SocketWriter
from gateway.net.tls_info import is_tls, tls_info
from gateway.net.turn import Turn

#: Time limit for the peer's answer to a close, and for taking the last output, in seconds.
_FAREWELL_S: Final = 5

#: Seconds between probes of a peer that is held back; a peer that is connected ignores them.
_PROBE_S: Final = 3

#: Seconds that a connection stays open that is held back and whose peer has closed its side.
_LINGER_S: Final = 5

#: Bytes of the protocol header of AMQP, which a health probe sends to see whether it is answered.
_PROTOCOL_HEADER: Final = 8

#: The longest rest in ticks: an hour. With a minute, 10,000 idle connections cost 0.1 % of a core.
MOST_RESTED: Final = 3600 * TICKS_PER_S

#: The longest rest of a connection whose credentials expire, in ticks: a change of the wall clock is noticed after it.
_MOST_RESTED_UNTIL_EXPIRY: Final = 60 * TICKS_PER_S

#: Events that are written for debugging only: every health probe opens a connection, and the reason comes at the end.
_DETAILS: Final = ("connection opened", "connection closing")

#: Bytes that a client may send within one to two ticks and still count as one that sends little.
_LIGHT_BYTES: Final = 32 * 1024


class PeerProtocol(Protocol):
    """One connection's transport and timers; ``io`` is its input and output.

    A subclass connects ``io`` with a machine in its constructor, and may override ``on_tick``, ``ticks_to_rest``,
    ``block``, ``unblock``, ``info``, ``channels`` and ``channel_count``.

    Time is counted in ticks, ``TICKS_PER_S`` a second, so that the hot path reads no clock. While the connection is
    open, ``quiet`` and ``silent`` count the ticks in which nothing was sent, and nothing was received. An idle
    connection rests in most ticks, see ``Ticking``.
    """

    __slots__ = (
        "_age",
        "_broker",
        "_connected_at_ms",
        "_end_reason",
        "_farewell",
        "_gone_ticks",
        "_held_ticks",
        "_host",
        "_is_held_back",
        "_is_in_flow",
        "_log",
        "_login_timeout_s",
        "_octets_before",
        "_octets_seen",
        "_peer_port",
        "_port",
        "_tls",
        "_turn",
        "connected",
        "io",
        "is_kept",
        "is_resumed",
        "name",
        "peer_host",
        "quiet",
        "rests_since",
        "silent",
        "transport",
        "wakes_at",
    )

    protocol_name: str
    connected: int  # both are in slots, because a dictionary of two takes 0.2 KiB
    transport: Any

    def __init__(self, broker: Broker, turn: Turn, log: StructuredLog, login_timeout_s: float) -> None:
        self.connected = 0
        self.transport = None
        self.name = ""
        self.is_resumed = self.is_kept = False
        self.peer_host = self._host = ""
        self._peer_port = self._port = 0
        self.quiet = self.silent = 0
        self.wakes_at = self.rests_since = 0
        self._is_in_flow = self._is_held_back = False
        self._broker = broker
        self._turn = turn
        self._log = log
        self._login_timeout_s = login_timeout_s
        self.io = ConnectionIO(self, broker.journal, turn)
        self._age = self._farewell = self._held_ticks = self._gone_ticks = 0
        self._octets_seen = self._octets_before = 0  # received until the last tick, and until the one before
        self._end_reason = ""
        self._connected_at_ms = 0
        self._tls: TlsInfo | None = None

    @property
    def certificate(self) -> CertificateSubject | None:
        """The names in the verified client certificate. Read it at the login, after the TLS handshake."""
        return subject_of(self.transport)

    @property
    def state(self) -> str:
        """The connection's state in listings; ``flow`` while its input exceeds its share of a turn, as in RabbitMQ."""
        phase = self.machine.phase
        if phase is not Phase.OPEN:
            return phase.name.lower()
        return "flow" if self._is_in_flow or self.io.has_leftover else "running"

    @property
    def machine(self) -> Machine:
        """The connection's state machine; ``CLOSED_MACHINE`` after the connection is closed."""
        return self.io.machine

    # Overridden by subclasses

    def on_tick(self) -> None:
        """Do the protocol's periodic work while the connection is open; called at each tick."""

    def ticks_to_rest(self) -> int:
        """Return the number of ticks in which ``on_tick`` has nothing to do if nothing is received or sent."""
        return 0

    def block(self, reason: str) -> None:
        """Tell a publishing client that it is blocked; may be called again while it is."""

    def unblock(self) -> None:
        """Resume publishing; safe to call when not blocked."""

    def probe(self) -> None:
        """Send a frame without effect, if the protocol has one; called every few seconds while the peer is held back.

        The peer's close waits behind unread input, but its system answers a write to a closed socket with a reset.
        """

    # Called by Twisted

    def connectionMade(self) -> None:
        """Start serving a connection."""
        transport: Any = self.transport
        if not isinstance(transport, PlainTransport):
            transport.setTcpNoDelay(True)
            self.is_resumed = getattr(transport, "is_resumed", False)
            self.is_kept = getattr(transport, "is_kept", False)
        (self.peer_host, self._peer_port), (self._host, self._port) = _places_of(transport)
        self.name = f"{self.peer_host}:{self._peer_port} -> {self._host}:{self._port}"
        self._connected_at_ms = self._broker.clock.wall_ms()
        self.io.writer = SocketWriter(transport, self.io)
        if isinstance(transport, PlainTransport | ServerTransport):
            transport.read_by(self.io)
        self._broker.connections.add(self)
        self.log("connection opened")

    def dataReceived(self, data: bytes) -> None:
        """Handle bytes that were not read from the socket directly: from TLS, WebSocket or behind a PROXY header."""
        self.io.take(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Release what the connection holds."""
        why = self._end_reason or reason.getErrorMessage()
        self._broker.connections.remove(self)
        vhost, user = self.vhost_name, self.user_name
        write = self._log.info if self._end_reason or not is_probe(self.io, reason) else self._log.debug
        try:
            with self._broker.clock.background.acting.being(self.machine):
                self.machine.lost()
        except Exception:  # an error in one connection's end must not affect the others
            self._log.error("internal error", exc_info=True, connection=self.name)
        self._turn.budget.take_pending()  # no other connection has to wait for what the end of this one causes
        self.io.detach()
        self._turn.touch()
        write("connection closed", connection=self.name, user=user, vhost=vhost, reason=why)

    # Called by the machine

    def log(self, event: str, **details: object) -> None:
        """Log an event of this connection. The reason of its end is logged once, when it is closed."""
        if "reason" in details:
            self._end_reason = str(details["reason"])
        write = self._log.debug if event in _DETAILS else self._log.info
        write(event, connection=self.name, **details)

    def opened(self) -> None:
        """Move the connection to the established ones and log it."""
        promote(self.transport)
        self._broker.connections.entered(self)
        self.log("connection in use", user=self.user_name, vhost=self.vhost_name)

    def hang_up(self) -> None:
        """Close the transport after the outbox is sent."""
        self.io.is_ending = True
        self.wake()
        self.io.outbox.wake()

    def publishing(self) -> None:
        """Subject the connection to alarms and flow control; called at the client's first publish."""
        self.update_flow_control()

    def go_on(self) -> None:
        """Continue with the input after a request that took several turns."""
        self.io.resume()

    # Called by ``io``

    def fail(self) -> None:
        """End the connection after an internal error."""
        self._log.error("internal error", exc_info=True, connection=self.name)
        try:
            self.machine.fault()
        except Exception:  # the same error may prevent an orderly close
            self._abort()

    def send_ahead(self, frame: bytes) -> None:
        """Send a frame before all waiting output: a heartbeat, which may stand between any two frames."""
        if self.io.writer is not None:
            self.quiet = 0
            self.wake()
            self.io.writer.send([frame], len(frame))

    def give_up(self, reason: str) -> None:
        """Abort the connection of a peer that is gone, or does not log in."""
        self.log("connection closing", reason=reason)
        self._abort()

    def _abort(self) -> None:
        if self.io.writer is not None:
            self.io.stop_listening()
            self.io.writer.abort()

    # Called by the broker

    @property
    def vhost_name(self) -> str:
        """The name of the virtual host."""
        return self.machine.vhost.name if self.machine.vhost is not None else ""

    @property
    def user_name(self) -> str:
        """The user's name."""
        return self.machine.user_name

    @property
    def octets(self) -> tuple[int, int]:
        """The bytes received and sent."""
        return self.io.octets, 0 if self.io.writer is None else self.io.writer.octets

    @property
    def channel_count(self) -> int:
        """Return the number of open channels."""
        return 0

    def channels(self) -> list[ChannelInfo]:
        """Return the channels for listings."""
        return []

    def load(self) -> PeerLoad | None:
        """Add what was counted to the totals of the virtual host; return what the connection holds."""
        return self.machine.load()

    def unsettled(self) -> Iterable[tuple[ConsumedQueue, QueuedMessage, int]]:
        """Return the deliveries that the client has not settled: queue, message and number of the channel."""
        return self.machine.unsettled()

    def info(self) -> ConnectionInfo:
        """Return the connection for listings; a subclass replaces the fields of its protocol."""
        transport: Any = self.transport
        io, writer = self.io, self.io.writer
        if self._tls is None and writer is not None:
            self._tls = tls_info(transport)
        return ConnectionInfo(
            protocol=self.protocol_name,
            state=self.state,
            host=self._host,
            port=self._port,
            peer_host=self.peer_host,
            peer_port=self._peer_port,
            is_tls=is_tls(transport),
            connected_at_ms=self._connected_at_ms,
            auth_mechanism="",
            client_properties={},
            frame_max=0,
            channel_max=0,
            timeout_s=0,
            received=(io.octets, io.reads),
            sent=(0, 0) if writer is None else (writer.octets, writer.writes),
            pending=io.outbox.size,
            tls=self._tls,
        )

    def force_close(self, reason: str) -> None:
        """Close the connection from the server's side."""
        self.wake()
        self.machine.force_close(reason)
        if self._is_held_back:  # the client's answer is awaited
            self._is_held_back = False
            self.update_reading()
        self._turn.touch()

    def hold_back(self) -> None:
        """Read nothing more from the peer, and handle no more of what was read, until it is closed from this side."""
        self._is_held_back = True
        self.update_reading()

    def fail_confirms(self) -> None:
        """Refuse every publish that waits for its confirm."""
        self.machine.fail_confirms()

    def update_flow_control(self) -> None:
        """Hold back or release a publisher according to alarms and backlogs."""
        if self.io.writer is None:
            return  # it was closed a moment ago, by an action on another connection
        alarms = self._broker.alarms
        if alarms and self.machine.has_published:
            self.block(alarms.reason)
        elif self.name in self._broker.archive_context.blocked_publishers:
            self.block("the archive is behind")
        elif not alarms:
            self.unblock()
        self.update_reading()

    def update_reading(self) -> None:
        """Read from the peer unless it publishes too much or does not take its output.

        While the disk is behind, acknowledgements wait as publishes do, because they cause as many writes; clients that
        sent little lately wait only if it is far behind. Alarms hold back publishers only, since consumers relieve
        them; an archive that is behind holds back those who publish to it.
        """
        broker, io, machine = self._broker, self.io, self.machine
        must_wait = (
            self._is_held_back
            or io.outbox.size > FLOOD
            or (machine.has_published and bool(broker.alarms))
            or self.name in broker.archive_context.blocked_publishers
            or (broker.journal.disk_backlog.is_large and self._must_wait_for_disk)
        )
        if io.writer is not None:
            io.set_reading(not must_wait)

    @property
    def _must_wait_for_disk(self) -> bool:
        if not (self.machine.has_published or self.machine.has_unsettled):
            return False
        is_busy = self.io.octets - self._octets_before > _LIGHT_BYTES
        return is_busy or self._broker.journal.disk_backlog.is_very_large

    def tick(self) -> int:
        """Check time limits; called ``TICKS_PER_S`` times a second, possibly once after the connection is closed.

        Return the number of ticks to rest; ``wake`` ends the rest.
        """
        if self.io.writer is None:
            return 0
        phase = self.machine.phase
        self._octets_before, self._octets_seen = self._octets_seen, self.io.octets
        self._is_in_flow, self.io.was_held = self.io.was_held, self.io.has_leftover
        if phase is Phase.LEAVING:
            self._farewell += 1
            if self._farewell > _FAREWELL_S * TICKS_PER_S:
                self._abort()
        elif phase is Phase.ENTERING:
            self._age += 1
            if self._age >= self._login_timeout_s * TICKS_PER_S:
                self.give_up("handshake timeout")
        else:
            self._count_silence()
            expires_at_s = self.machine.expires_at_s
            if expires_at_s and self._broker.clock.wall_ms() >= expires_at_s * 1000:
                self.machine.expire()
                self._turn.touch()
                return 0
            if not self.io.is_reading and self._has_hung_up():
                return 0
            self._held_ticks = 0 if self.io.is_reading else self._held_ticks + 1
            self.on_tick()
            if self.silent > 1 and self.quiet:
                return self._rest()
        return 0

    def _rest(self) -> int:
        """Return the number of ticks that an open connection may rest that was idle in the last two; begin to rest."""
        io, machine = self.io, self.machine
        if io.has_leftover or io.is_ending or io.outbox.size or machine.phase is not Phase.OPEN:
            return 0
        ticks = min(self.ticks_to_rest(), MOST_RESTED)
        if machine.expires_at_s and ticks > 0:
            left_ms = machine.expires_at_s * 1000 - self._broker.clock.wall_ms()
            ticks = min(ticks, int(left_ms * TICKS_PER_S) // 1000, _MOST_RESTED_UNTIL_EXPIRY)
        io.is_resting = ticks > 0
        return ticks

    def rested(self, ticks: int) -> None:
        """Count ticks in which the connection rested, without input and output."""
        self.io.is_resting = False
        self.quiet += ticks
        self.silent += ticks

    def wake(self) -> None:
        """Tick again, because something happens."""
        if self.wakes_at:
            self._broker.connections.ticking.wake(self)

    def _has_hung_up(self) -> bool:
        """Abort a connection that is held back and whose peer is gone; return whether it is gone.

        Its memory may be the reason of the alarm. After an orderly close it stays for a short time: input sent before
        the close is read if the alarm is cleared soon.
        """
        if not self._held_ticks:
            keep_alive(self.transport)
        hang_up = hang_up_of(self.transport)
        has_come = self._octets_seen != self._octets_before
        self._gone_ticks = self._gone_ticks + 1 if hang_up and not has_come else 0
        if not hang_up & BROKEN and self._gone_ticks <= _LINGER_S * TICKS_PER_S:
            if self._held_ticks % (_PROBE_S * TICKS_PER_S) == _PROBE_S * TICKS_PER_S - 1:
                self.probe()
            return False
        self.give_up("client disconnected while it was held back")
        return True

    def _count_silence(self) -> None:
        """Count the ticks without output, and without input while the peer is read from."""
        io = self.io
        self.quiet = 0 if io.has_sent else self.quiet + 1
        self.silent = 0 if io.has_received or not io.is_reading else self.silent + 1
        io.has_received = io.has_sent = False


def _places_of(transport: Any) -> tuple[tuple[str, int], tuple[str, int]]:
    """Return the host and port of the peer, and of this side."""
    if isinstance(transport, PlainTransport):
        peer, host = transport.take_addresses()
    else:
        theirs, own = transport.getPeer(), transport.getHost()
        peer, host = (theirs.host, theirs.port), (own.host, own.port)
    return (plain_host(peer[0]), peer[1]), (plain_host(host[0]), host[1])


def is_probe(io: ConnectionIO, reason: Failure) -> bool:
    """Return whether the peer closed the connection after nothing or a protocol header, as a health probe does."""
    machine = io.machine
    is_at_begin = machine.phase is Phase.ENTERING and not machine.user_name and io.octets <= _PROTOCOL_HEADER
    return is_at_begin and isinstance(reason.value, ConnectionDone | ConnectionLost)
