"""The only contact of AMQP with Twisted: moves bytes between a transport and a connection, decides nothing."""

from typing import Any, Final

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure

from gateway.access import CertificateSubject
from gateway.kernel.connections import TICKS_PER_S, ChannelFacts, PeerFacts, TlsFacts
from gateway.logs import Log
from gateway.net.certificates import subject_of
from gateway.net.handshakes import tls_facts
from gateway.net.listeners import plain_host
from gateway.net.turn import Turn
from gateway.net.wire import Wire
from gateway_amqp.connection import HEARTBEAT_FRAME, Connection
from gateway_amqp.outbox import FLOOD
from gateway_amqp.settings import AmqpSettings
from gateway_amqp.state import State

_log: Final = Log("amqp")

#: How long a peer may take to answer our close, or to take what it was sent last, in seconds.
_FAREWELL_S: Final = 5


class AmqpServer(Protocol):
    """One connection's transport and clockwork.

    Heartbeats are minded by ticks: ``_heard`` and ``_spoke`` say whether anything came or went since the last one, so
    the hot path reads no clock. ``_age``, ``_silent``, ``_quiet`` and ``_farewell`` count ticks.
    """

    def __init__(self, settings: AmqpSettings, turn: Turn) -> None:
        self._settings = settings
        self._turn = turn
        self.machine = Connection(settings, self, self._awaken)
        self.name = ""
        self.peer_host = ""
        self._wire: Wire | None = None
        self._is_reading = True
        self._is_ending = False
        self._is_held = False
        self._heard = True
        self._spoke = True
        self._age = 0
        self._silent = 0
        self._quiet = 0
        self._farewell = 0
        self._end_reason = ""
        self._connected_at_ms = 0
        self._octets = 0
        self._reads = 0
        self._tls: TlsFacts | None = None

    @property
    def certificate(self) -> CertificateSubject | None:
        """The verified client certificate's names; read when somebody logs in, after the TLS handshake."""
        return subject_of(self.transport)

    # What Twisted says

    def connectionMade(self) -> None:
        """A peer connected."""
        transport: Any = self.transport
        transport.setTcpNoDelay(True)
        peer, host = transport.getPeer(), transport.getHost()
        self.peer_host = plain_host(peer.host)
        self.name = f"{self.peer_host}:{peer.port} -> {plain_host(host.host)}:{host.port}"
        self._connected_at_ms = self._settings.broker.clock.wall_ms()
        self._wire = Wire(transport, self._congested)
        self._settings.broker.connections.add(self)
        self.log("connection opened")

    def dataReceived(self, data: bytes) -> None:
        """Bytes came."""
        self._heard = True
        self._octets += len(data)
        self._reads += 1
        try:
            self.machine.receive(data)
        except Exception:  # the seam to one peer: what breaks while serving it is told to it, and ends with it
            self.fail()
        self._turn.touch()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """The peer is gone."""
        why = self._end_reason or reason.getErrorMessage()
        self._settings.broker.connections.remove(self)
        vhost, user = self.vhost_name, self.user_name
        try:
            self.machine.lost()
        except Exception:  # as above; the others still need what it held
            _log.error("internal error", exc_info=True, connection=self.name)
        self._wire = None
        self._turn.touch()
        _log.info("connection closed", connection=self.name, user=user, vhost=vhost, reason=why)

    # What the machine asks for

    def log(self, event: str, **details: object) -> None:
        """Write a line about this connection. The reason of its end is told once, when it is closed."""
        if "reason" in details:
            self._end_reason = str(details["reason"])
        write = _log.debug if event == "connection closing" else _log.info
        write(event, connection=self.name, **details)

    def opened(self) -> None:
        """The connection is in its virtual host."""
        self.log("connection in use", user=self.user_name, vhost=self.vhost_name)

    def hang_up(self) -> None:
        """Close the transport after what is in the outbox."""
        self._is_ending = True
        self.machine.outbox.wake()

    def publishing(self) -> None:
        """The client publishes: from now on it is held back when publishers are."""
        self.weigh_publishing()

    # What turns ask for

    def end_turn(self) -> None:
        """Let confirms that are due into the outbox."""
        self.machine.end_turn()

    def flush(self) -> None:
        """Send everything that may leave now."""
        outbox = self.machine.outbox
        outbox.is_awake = False
        if self._wire is None:
            return
        if not outbox.is_congested:
            pieces, size = outbox.take(self._settings.broker.journal.watermark)
            if pieces:
                self._spoke = True
                self._wire.send(pieces, size)
            if outbox.awaited:
                self._wait_for_disk()
            elif self._is_ending and not outbox.pieces:
                self._is_ending = False
                self._wire.close()
        if outbox.weigh():
            self.machine.resume()
        self._weigh_reading()

    def fail(self) -> None:
        """End the connection with 541: something of ours broke while serving it."""
        _log.error("internal error", exc_info=True, connection=self.name)
        try:
            self.machine.fault()
        except Exception:  # what broke keeps it from ending in order, too
            if self._wire is not None:
                self._wire.abort()

    def _awaken(self) -> None:
        self._turn.awaken(self)

    def _wait_for_disk(self) -> None:
        """Come back when what the next frame promises is durable."""
        if not self._is_held:
            self._is_held = True
            journal = self._settings.broker.journal
            journal.when_durable(max(self.machine.outbox.awaited, journal.pending_lsn), self._disk_caught_up)

    def _disk_caught_up(self) -> None:
        self._is_held = False
        self.machine.outbox.wake()

    def _congested(self, is_congested: bool) -> None:
        outbox = self.machine.outbox
        outbox.is_congested = is_congested
        outbox.is_open = outbox.is_open and not is_congested  # opening is for ``flush``, which tells the consumers
        outbox.wake()

    # What the broker asks of any peer

    @property
    def vhost_name(self) -> str:
        """The virtual host it is in."""
        return self.machine.vhost.name if self.machine.vhost is not None else ""

    @property
    def user_name(self) -> str:
        """Who it is."""
        return self.machine.user_name

    @property
    def channel_count(self) -> int:
        """How many channels are open."""
        return self.machine.channel_count

    def facts(self) -> PeerFacts:
        """Tell what a listing shows of it."""
        transport: Any = self.transport
        peer, host = transport.getPeer(), transport.getHost()
        machine, wire = self.machine, self._wire
        if self._tls is None:
            self._tls = tls_facts(transport)
        frame_max, channel_max = machine.limits
        return PeerFacts(
            protocol="AMQP 0-9-1",
            state=_shown_state(machine),
            host=plain_host(host.host),
            port=host.port,
            peer_host=self.peer_host,
            peer_port=peer.port,
            is_tls=hasattr(transport, "getPeerCertificate"),
            connected_at_ms=self._connected_at_ms,
            auth_mechanism=machine.identity.mechanism,
            client_properties=machine.identity.client_properties,
            frame_max=frame_max,
            channel_max=channel_max,
            timeout_s=machine.heartbeat_s,
            received=(self._octets, self._reads),
            sent=(0, 0) if wire is None else (wire.octets, wire.writes),
            pending=machine.outbox.size,
            tls=self._tls,
        )

    def channels(self) -> list[ChannelFacts]:
        """Tell what a listing shows of its channels."""
        return self.machine.channel_facts()

    def force_close(self, reason: str) -> None:
        """End the connection from this side."""
        self.machine.force_close(reason)
        self._turn.touch()

    def fail_confirms(self) -> None:
        """Refuse every publish that waits for its confirm."""
        self.machine.fail_confirms()

    def weigh_publishing(self) -> None:
        """Stop reading from a publisher while an alarm stands or the disk is behind; go on afterwards."""
        alarms = self._settings.broker.alarms
        if not alarms:
            self.machine.unblock()
        elif self.machine.has_published:
            self.machine.block(alarms.reason)
        self._weigh_reading()

    def _weigh_reading(self) -> None:
        """Read from the peer unless it publishes too much, or does not take what it asked for."""
        broker, machine = self._settings.broker, self.machine
        must_wait = machine.outbox.size > FLOOD or (
            machine.has_published and (bool(broker.alarms) or broker.journal.is_backlogged)
        )
        if must_wait == self._is_reading and self._wire is not None:
            self._is_reading = not must_wait
            self._wire.read(self._is_reading)

    def tick(self) -> None:
        """Mind heartbeats and time limits; called ``TICKS_PER_S`` times a second."""
        state = self.machine.state
        if state in (State.CLOSING, State.CLOSED):
            self._farewell += 1
            if self._farewell > _FAREWELL_S * TICKS_PER_S and self._wire is not None:
                self._wire.abort()
        elif state is not State.OPEN:
            self._age += 1
            if self._age >= self._settings.login_timeout_s * TICKS_PER_S:
                self._give_up("handshake timeout")
        else:
            self.machine.mind_consumers()
            if self.machine.heartbeat_s:
                self._mind_heartbeats(self.machine.heartbeat_s)

    def _mind_heartbeats(self, interval_s: int) -> None:
        """Send a heartbeat after half an interval of quiet; give up after two of silence (4.2.7)."""
        self._quiet = 0 if self._spoke else self._quiet + 1
        self._silent = 0 if self._heard or not self._is_reading else self._silent + 1
        self._heard = self._spoke = False
        if self._silent > 2 * interval_s * TICKS_PER_S:
            self._give_up(f"missed heartbeats from client, timeout: {interval_s}s")
        elif 2 * self._quiet >= interval_s * TICKS_PER_S:
            self._quiet = 0
            self._beat()

    def _beat(self) -> None:
        """Send a heartbeat past everything that waits: it may come between any two frames (4.2.7)."""
        if self._wire is not None:
            self._wire.send([HEARTBEAT_FRAME], len(HEARTBEAT_FRAME))

    def _give_up(self, reason: str) -> None:
        self.log("connection closing", reason=reason)
        if self._wire is not None:
            self._wire.abort()


def _shown_state(machine: Connection) -> str:
    """Return the state of a connection by the name RabbitMQ gives it."""
    if machine.state is State.OPEN:
        return "blocked" if machine.is_blocked else "running"
    return machine.state.name.lower()


class AmqpFactory(Factory):
    """Makes the server side of each connection of a listener."""

    noisy = False

    def __init__(self, settings: AmqpSettings, turn: Turn) -> None:
        self._settings = settings
        self._turn = turn

    def buildProtocol(self, addr: IAddress | None) -> AmqpServer:
        """Return the server side of a new connection."""
        return AmqpServer(self._settings, self._turn)
