"""Client connections on sockets, frame by frame: AMQP and STOMP. That of MQTT is ``tests/durability/mqtt_link.py``."""

from typing import Any, Final

from pamqp import base, body, commands, frame, header, heartbeat
from pamqp.constants import FRAME_END_CHAR

from tests.protocols.socket_harness import SocketHarness
from tests.protocols.stomp.frame_reader import FrameReader, ReceivedFrame

_HEAD_BYTES: Final = 7

#: What a client must have to be told that it is blocked.
_CAPABILITIES: Final = {"capabilities": {"connection.blocked": True, "consumer_cancel_notify": True}}

AmqpFrame = base.Frame | header.ContentHeader | body.ContentBody | heartbeat.Heartbeat | Any


class _AmqpReader:
    """Cuts the bytes of the broker into frames."""

    def __init__(self) -> None:
        self._unread = b""

    def feed(self, data: bytes) -> list[AmqpFrame]:
        self._unread += data
        frames: list[AmqpFrame] = []
        while len(self._unread) >= _HEAD_BYTES:
            end = _HEAD_BYTES + int.from_bytes(self._unread[3:7], "big") + 1
            if len(self._unread) < end:
                break
            assert self._unread[end - 1 : end] == FRAME_END_CHAR
            frames.append(frame.unmarshal(self._unread[:end])[2])
            self._unread = self._unread[end:]
        return frames

    @property
    def is_complete(self) -> bool:
        return not self._unread


class AmqpLink(SocketHarness[Any]):
    """One connection with channel 1 open. ``blocked`` is the reason while the broker blocks publishers."""

    def __init__(self, address: tuple[str, int], timeout_s: float = 15.0, vhost: str = "/") -> None:
        super().__init__(address, _AmqpReader())  # type: ignore[arg-type]  # its frames have no common type
        self.socket.settimeout(timeout_s)
        self.blocked = ""
        self.send(b"AMQP\x00\x00\x09\x01")
        self.next_method()
        self.call(commands.Connection.StartOk(dict(_CAPABILITIES), "PLAIN", "\0guest\0guest", "en_US"), 0)
        self.send(frame.marshal(commands.Connection.TuneOk(2047, 131072, 0), 0))
        self.call(commands.Connection.Open(vhost), 0)
        self.call(commands.Channel.Open())

    def call(self, method: Any, channel: int = 1) -> Any:
        """Send a method, and return the answer; deliveries do not come before ``Basic.Consume``."""
        self.send(frame.marshal(method, channel))
        return self.next_method()

    def next_method(self) -> Any:
        """Return the next method, except reports that the broker blocks publishers."""
        while True:
            found = self._next()
            if self.note(found):
                continue
            if isinstance(found, commands.Connection.Close | commands.Channel.Close):
                raise ConnectionResetError(f"closed by the broker: {found.reply_code} {found.reply_text}")
            return found

    def note(self, found: AmqpFrame) -> bool:
        """Note a frame about the connection itself; return whether it was one."""
        if isinstance(found, commands.Connection.Blocked):
            self.blocked = found.reason or "blocked"
        elif isinstance(found, commands.Connection.Unblocked):
            self.blocked = ""
        else:
            return isinstance(found, heartbeat.Heartbeat)
        return True

    def publish(self, key: str, content: bytes, exchange: str = "", **properties: Any) -> None:
        """Publish a persistent message."""
        head = header.ContentHeader(0, len(content), commands.Basic.Properties(delivery_mode=2, **properties))
        parts = (commands.Basic.Publish(0, exchange, key), head, body.ContentBody(content))
        self.send(*(frame.marshal(part, 1) for part in parts if not isinstance(part, body.ContentBody) or content))

    def declare(self, queue: str, **arguments: Any) -> int:
        """Declare a durable queue; return the number of its messages."""
        named = {name.replace("_", "-"): value for name, value in arguments.items()}
        answer = self.call(commands.Queue.Declare(0, queue, durable=True, arguments=named))
        assert isinstance(answer, commands.Queue.DeclareOk), answer
        return int(answer.message_count)

    def take_all(self, queue: str) -> list[bytes]:
        """Fetch all messages of a queue, and remove them."""
        found = []
        while isinstance(answer := self.call(commands.Basic.Get(0, queue, no_ack=True)), commands.Basic.GetOk):
            size = self.next_method().body_size
            content = b""
            while len(content) < size:
                content += self.next_method().value
            found.append(content)
        assert isinstance(answer, commands.Basic.GetEmpty), answer
        return found


class StompLink(SocketHarness[ReceivedFrame]):
    """One connection of STOMP 1.2."""

    def __init__(self, address: tuple[str, int], timeout_s: float = 15.0, vhost: str = "/") -> None:
        super().__init__(address, FrameReader("1.2"))
        self.socket.settimeout(timeout_s)
        login = {"accept-version": "1.2", "host": vhost, "login": "guest", "passcode": "guest"}
        self.send(stomp_frame("CONNECT", login))
        found = self.next_frame()  # ERROR, for example while the broker starts
        assert found.verb == "CONNECTED", f"{found}"

    def next_frame(self) -> ReceivedFrame:
        """Wait for the next frame. :raises ConnectionResetError: if it is an ERROR."""
        found = self._next()
        if found.verb == "ERROR":
            raise ConnectionResetError(str(found))
        return found


def stomp_frame(verb: str, headers: dict[str, str], content: bytes = b"") -> bytes:
    """Return a frame."""
    lines = [verb, *(f"{name}:{value}" for name, value in headers.items())]
    return "\n".join(lines).encode() + b"\n\n" + content + b"\0"
