"""A client of a follower, and real brokers as its leaders, one after the other; no sockets."""

from pamqp import commands

from gateway.kernel.messages.message import Value
from gateway.testing import FakeClock
from gateway_amqp.resuming.relayed_connection import RelayedConnection
from gateway_amqp.tuning import PROTOCOL_HEADER
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frame_reader import FrameReader, ReceivedFrame
from tests.protocols.amqp.frames import ALL_CAPABILITIES, Sent, asked, start_ok, wire


class LeaderPeer(Peer):
    """The connection at a leader; ``sent`` is what it sent, as bytes."""

    def __init__(self, gateway: Gateway, *, is_resumed: bool) -> None:
        super().__init__(gateway)
        self.is_resumed = is_resumed
        self.sent = b""
        self.has_ended = False

    def take(self, data: bytes) -> None:
        self.sent += data

    def take_end(self) -> None:
        self.has_ended = True


class RelayedDialogue:
    """``gateways`` are the leaders to come, the first of which leads. Each has the durable queue ``orders``."""

    def __init__(
        self, count: int = 2, heartbeat_s: int = 60, capabilities: dict[str, Value] = ALL_CAPABILITIES
    ) -> None:
        self.clock = FakeClock()
        self.gateways = [Gateway(clock=self.clock) for _ in range(count)]
        for gateway in self.gateways:
            gateway.broker.vhost("/").declare_queue("orders", is_durable=True)
        self.relay = RelayedConnection()
        self.leader = LeaderPeer(self.gateways[0], is_resumed=False)
        self._reader = FrameReader()
        self._lines: list[ReceivedFrame] = []
        self.send(PROTOCOL_HEADER)
        self.send(start_ok("\0guest\0guest", capabilities=capabilities))
        self.send(commands.Connection.TuneOk(2047, 131_072, heartbeat_s))
        self.send(asked(commands.Connection.Open, virtual_host="/"))
        self.send(commands.Channel.Open())
        assert self.receive()[-1] == "Channel.OpenOk(channel_id='')"

    def send(self, *frames: Sent, channel: int = 1) -> None:
        """Send frames as the client; the broker does not answer before ``receive``."""
        self.relay.receive_from_client(wire(*frames, channel=channel))
        self._pass()

    def receive(self) -> list[str]:
        """Return what the client has received."""
        return [str(each) for each in self.receive_frames()]

    def receive_frames(self) -> list[ReceivedFrame]:
        """Return the same as values."""
        for _ in range(4):
            self.leader.gateway.settle()
            self.clock.advance(1)  # streams are read in slices
            self._pass()
        taken, self._lines = self._lines, []
        return taken

    def request(self, *frames: Sent, channel: int = 1) -> list[str]:
        """Send frames as the client; return what it receives."""
        self.send(*frames, channel=channel)
        return self.receive()

    def _pass(self) -> None:
        while True:
            self._lines += self._reader.feed(self.relay.waiting.take_for_client())
            data = self.relay.waiting.take_for_leader()
            if data:
                self.leader._receive(data)
            sent, self.leader.sent = self.leader.sent, b""
            if sent:
                self.relay.receive_from_leader(sent)
            if not data and not sent:
                return

    def lose(self) -> bool:
        """Lose the leader: what it was about to send is lost."""
        self.leader.sent = b""
        is_held = self.relay.leader_lost()
        self._lines += self._reader.feed(self.relay.waiting.take_for_client())
        self.leader.lose()
        return is_held

    def find(self, at: int = 1) -> None:
        """Find another leader."""
        self.leader = LeaderPeer(self.gateways[at], is_resumed=True)
        self.relay.leader_found()
        for _ in range(4):
            self._pass()
            self.leader.gateway.settle()
        self._pass()

    def change(self, at: int = 1) -> list[str]:
        """Lose the leader and find another; return what the client has received then."""
        assert self.lose()
        self.find(at)
        return self.receive()

    def bodies(self, queue: str = "orders") -> list[bytes]:
        """Take the messages of a queue at the leader."""
        found = self.leader.gateway.broker.vhost("/").queue(queue)
        bodies: list[bytes] = []
        while (entry := found.get()) is not None:  # type: ignore[attr-defined]  # it is no stream
            bodies.append(bytes(entry.message.body))
        return bodies
