"""A connection to a NATS server as a state machine: bytes in, events out, no sockets."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeAlias

from gateway.version import VERSION
from gateway_jetstream.codec import encoder
from gateway_jetstream.codec.decoder import NatsDecoder
from gateway_jetstream.codec.frames import Delivered, ErrorText, Info, Ping, Pong
from gateway_jetstream.errors import CannotConnect, NatsProtocolError


class NatsStage(Enum):
    """The progress of a connection."""

    AWAITING_INFO = auto()
    AWAITING_TLS = auto()
    AWAITING_PONG = auto()
    OPEN = auto()


@dataclass(frozen=True, slots=True)
class TlsWanted:
    """TLS begins now, before anything else is sent; then comes ``tls_started``."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The server accepted the login."""

    info: Info


@dataclass(frozen=True, slots=True)
class Leaving:
    """The server stops soon: another one should be used."""


@dataclass(frozen=True, slots=True)
class Warned:
    """The server refused something, and did not close the connection."""

    text: str


Happened: TypeAlias = TlsWanted | Opened | Leaving | Warned | Delivered


class NatsConversation:
    """The client's side of one connection. Owns its bytes; the caller sends what ``outgoing`` returns.

    ``login`` returns the fields of CONNECT for the server's INFO.
    """

    def __init__(self, name: str, uses_tls: bool, login: Callable[[Info], dict[str, Any]]) -> None:
        self.stage = NatsStage.AWAITING_INFO
        self.info = Info({})
        self.unanswered_pings = 0
        self._name = name
        self._uses_tls = uses_tls
        self._login = login
        self._decoder = NatsDecoder()
        self._outgoing: list[bytes] = []

    def receive(self, data: bytes) -> Iterator[Happened]:
        """Take bytes of the server; yield what they say.

        :raises NatsProtocolError: if the server violates the protocol.
        :raises CannotConnect: if it refuses the login.
        """
        if self.stage is NatsStage.AWAITING_TLS and data:  # anyone between the two could have added it
            raise _unencrypted()
        frames = self._decoder.feed(data)
        for frame in frames:
            if isinstance(frame, Delivered):
                self._require_open("a message")
                yield frame
            elif isinstance(frame, Ping):
                self.send(encoder.PONG)
            elif isinstance(frame, Pong):
                self.unanswered_pings = 0
                if self.stage is NatsStage.AWAITING_PONG:
                    self.stage = NatsStage.OPEN
                    yield Opened(self.info)
            elif isinstance(frame, Info):
                happened = self._take_info(frame)
                if happened is not None:
                    yield happened
                if isinstance(happened, TlsWanted) and (next(frames, None) is not None or self._decoder.kept):
                    raise _unencrypted()
            elif isinstance(frame, ErrorText):
                if self.stage is not NatsStage.OPEN:
                    raise CannotConnect(f"the server refuses the login: {frame.text}")
                yield Warned(frame.text)

    def _take_info(self, info: Info) -> TlsWanted | Leaving | None:
        is_first = self.stage is NatsStage.AWAITING_INFO
        self.info = info
        if is_first and (self._uses_tls or info.requires_tls):
            self.stage = NatsStage.AWAITING_TLS
            return TlsWanted()
        if is_first:
            self._connect()
        return Leaving() if info.is_leaving and not is_first else None

    def tls_started(self) -> None:
        """Continue after TLS began: everything from now on is encrypted."""
        self._connect()

    def _connect(self) -> None:
        options = {
            "verbose": False,
            "pedantic": False,
            "headers": True,
            "no_responders": True,
            "protocol": 1,
            "lang": "python-gateway",
            "version": VERSION,
            "name": self._name,
            "tls_required": self.stage is NatsStage.AWAITING_TLS,
            **self._login(self.info),
        }
        self.stage = NatsStage.AWAITING_PONG
        self.send(encoder.connect(options) + encoder.PING)

    def ping(self) -> None:
        """Ask the server whether it is there."""
        self.unanswered_pings += 1
        self.send(encoder.PING)

    def send(self, data: bytes) -> None:
        """Add bytes to the output."""
        self._outgoing.append(data)

    @property
    def has_outgoing(self) -> bool:
        """Whether there is something to write."""
        return bool(self._outgoing)

    def outgoing(self) -> bytes:
        """Return everything to write since the last call, as one piece."""
        data = b"".join(self._outgoing)
        self._outgoing.clear()
        return data

    def _require_open(self, what: str) -> None:
        if self.stage is not NatsStage.OPEN:
            raise NatsProtocolError(f"the server sent {what} while the connection is {self.stage.name}")


def _unencrypted() -> NatsProtocolError:
    return NatsProtocolError("the server sent more than INFO before TLS began")
