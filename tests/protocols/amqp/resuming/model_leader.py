"""A model of leaders that follow each other on one log, as far as one queue, publishers and consumers need it.

What a leader has received and not committed dies with it; so do its deliveries, which come again with their flag.
"""

from struct import Struct
from typing import Any, Final

from pamqp import commands

from gateway_amqp.content import BODY, HEADER, METHOD, read_frame_head
from gateway_amqp.methods import decode_method, encode_method

_HEAD: Final = Struct(">BHI")
_ANSWERS: Final[dict[type, Any]] = {
    commands.Connection.StartOk: lambda: commands.Connection.Tune(2047, 131_072, 10),
    commands.Connection.Open: commands.Connection.OpenOk,
    commands.Channel.Open: commands.Channel.OpenOk,
    commands.Channel.Close: commands.Channel.CloseOk,
    commands.Confirm.Select: commands.Confirm.SelectOk,
    commands.Basic.Qos: commands.Basic.QosOk,
}


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    """Return a frame."""
    return _HEAD.pack(kind, channel, len(payload)) + payload + b"\xce"


def content(channel: int, method: Any, body: bytes, pieces: int = 1) -> bytes:
    """Return a method and its content, in so many body frames."""
    header = frame(HEADER, channel, b"\x00\x3c\x00\x00" + len(body).to_bytes(8) + b"\x00\x00")
    size = max(1, -(-len(body) // pieces))
    parts = [frame(BODY, channel, body[at : at + size]) for at in range(0, len(body), size)]
    return encode_method(channel, method) + header + b"".join(parts)


class FrameCutter:
    """Cuts bytes into frames: (kind, channel, payload)."""

    def __init__(self) -> None:
        self._unread = b""

    def feed(self, data: bytes) -> list[tuple[int, int, bytes]]:
        """Return the frames that are whole now."""
        self._unread += data
        found = []
        while len(self._unread) >= 8:
            kind, channel, size = read_frame_head(self._unread, 0)
            if len(self._unread) < size + 8:
                break
            assert self._unread[size + 7] == 0xCE
            found.append((kind, channel, self._unread[7 : size + 7]))
            self._unread = self._unread[size + 8 :]
        return found


class Log:
    """The data that survive: the bodies that were stored, in order, those acknowledged, and those delivered."""

    def __init__(self) -> None:
        self.stored: list[bytes] = []
        self.waiting: list[bytes] = []
        self.acknowledged: list[bytes] = []
        self.delivered: set[bytes] = set()
        self.queues: set[str] = {"orders"}


class ModelLeader:
    """One leader. ``outgoing`` is what it sends."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.outgoing = b""
        self.exclusive: set[str] = set()
        self.is_dead = False
        self._cutter = FrameCutter()
        self._is_greeted = False
        self._early = b""
        self._published: list[tuple[int, int, bytes]] = []  # channel, number, body: not committed
        self._numbers: dict[int, int] = {}  # of channels that confirm
        self._assembly: dict[int, tuple[int, bytes]] = {}
        self._open: set[int] = set()
        self._consumers: dict[int, str] = {}
        self._unsettled: dict[int, dict[int, bytes]] = {}
        self._tags: dict[int, int] = {}

    def receive(self, data: bytes) -> None:
        """Handle bytes of the follower."""
        if not self._is_greeted:
            self._early += data
            if len(self._early) < 8:
                return
            assert self._early[:8] == b"AMQP\0\0\x09\x01"
            self._is_greeted, data = True, self._early[8:]
            self.send(0, commands.Connection.Start(0, 9, {}, "PLAIN", "en_US"))
        for kind, channel, payload in self._cutter.feed(data):
            self._frame(kind, channel, payload)

    def send(self, channel: int, method: Any) -> None:
        """Send a method."""
        self.outgoing += encode_method(channel, method)

    def _frame(self, kind: int, channel: int, payload: bytes) -> None:
        if kind == HEADER:
            self._assembly[channel] = (int.from_bytes(payload[4:12]), b"")
        elif kind == BODY:
            size, body = self._assembly[channel]
            self._assembly[channel] = (size, body + payload)
        elif kind == METHOD:
            self._method(channel, decode_method(payload))
        if kind in (HEADER, BODY) and len(self._assembly[channel][1]) == self._assembly[channel][0]:
            self._publish(channel, self._assembly.pop(channel)[1])

    def _publish(self, channel: int, body: bytes) -> None:
        if channel in self._numbers:
            self._numbers[channel] += 1
            self._published.append((channel, self._numbers[channel], body))
        else:
            self._published.append((channel, 0, body))

    def _method(self, channel: int, method: Any) -> None:
        if isinstance(method, commands.Channel.Open):
            assert channel not in self._open
            self._open.add(channel)
            self._tags[channel], self._unsettled[channel] = 0, {}
        elif isinstance(method, commands.Channel.Close):
            self._open.discard(channel)
            for each in (self._numbers, self._consumers, self._unsettled):
                each.pop(channel, None)
        elif channel:
            assert channel in self._open, f"{method.name} on channel {channel}, which is not open"
        if isinstance(method, commands.Confirm.Select):
            self._numbers[channel] = 0
        elif isinstance(method, commands.Queue.Declare):
            self._declare(channel, method)
        elif isinstance(method, commands.Basic.Consume):
            assert method.queue in self.log.queues | self.exclusive
            self._consumers[channel] = method.consumer_tag or "ctag-1"
            self.send(channel, commands.Basic.ConsumeOk(self._consumers[channel]))
        elif isinstance(method, commands.Basic.Ack):
            self._acknowledge(channel, method)
        if type(method) in _ANSWERS:
            self.send(channel, _ANSWERS[type(method)]())

    def _declare(self, channel: int, method: commands.Queue.Declare) -> None:
        name = method.queue or f"amq.gen-{len(self.exclusive)}"
        if method.exclusive:
            self.exclusive.add(name)
        elif not method.passive:
            self.log.queues.add(name)
        self.send(channel, commands.Queue.DeclareOk(name, 0, 0))

    def _acknowledge(self, channel: int, method: commands.Basic.Ack) -> None:
        unsettled, tag = self._unsettled[channel], method.delivery_tag
        tags = [each for each in unsettled if each == tag or (method.multiple and (each < tag or not tag))]
        assert tags or (method.multiple and not tag), f"unknown delivery tag {tag}"
        self.log.acknowledged += [unsettled.pop(each) for each in tags]

    # What the test lets it do

    def commit(self, count: int, *, is_multiple: bool, is_reported: bool = True) -> None:
        """Store the first publishes; confirm them."""
        if self.is_dead:
            return
        done, self._published = self._published[:count], self._published[count:]
        self.log.stored += [body for _, _, body in done]
        self.log.waiting += [body for _, _, body in done]
        if not is_reported:
            return
        if is_multiple:
            last = {channel: number for channel, number, _ in done if number}
            for channel, number in last.items():
                self._confirm(channel, number, is_multiple=True)
        else:
            for channel, number, _ in reversed(done):  # in any order: the later ones first
                if number:
                    self._confirm(channel, number, is_multiple=False)

    def _confirm(self, channel: int, number: int, *, is_multiple: bool) -> None:
        if channel in self._open:
            self.send(channel, commands.Basic.Ack(number, is_multiple))

    def deliver(self, count: int, pieces: int) -> None:
        """Deliver the first messages that wait to a consumer."""
        for channel, tag in [] if self.is_dead else list(self._consumers.items())[:1]:
            for _ in range(min(count, len(self.log.waiting))):
                body = self.log.waiting.pop(0)
                self._tags[channel] += 1
                self._unsettled[channel][self._tags[channel]] = body
                redelivered = body in self.log.delivered
                self.log.delivered.add(body)
                deliver = commands.Basic.Deliver(tag, self._tags[channel], redelivered, "", "orders")
                self.outgoing += content(channel, deliver, body, pieces)

    def die(self, committed: int) -> None:
        """End. Some publishes were stored although no client was told; what was delivered waits again, first."""
        self.commit(committed, is_multiple=False, is_reported=False)
        self.is_dead = True
        back = [body for unsettled in self._unsettled.values() for body in unsettled.values()]
        self.log.waiting = back + self.log.waiting
