"""The frames of a NATS server: INFO, PING, PONG, +OK, -ERR and messages."""

from dataclasses import dataclass
from typing import Any, Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Info:
    """INFO: what the server is and allows."""

    fields: dict[str, Any]  # Any: values of JSON

    @property
    def version(self) -> str:
        """The version of the server, as it writes it."""
        return str(self.fields.get("version", ""))

    @property
    def name(self) -> str:
        """The name of the server in its cluster."""
        return str(self.fields.get("server_name", ""))

    @property
    def most_payload(self) -> int:
        """The size of the largest message, headers included, in bytes."""
        limit = self.fields.get("max_payload")
        return limit if type(limit) is int and limit > 0 else 1024 * 1024

    @property
    def requires_tls(self) -> bool:
        """Whether the client must use TLS."""
        return self.fields.get("tls_required") is True

    @property
    def nonce(self) -> str:
        """The text that an nkey signs; empty if the server asks for none."""
        return str(self.fields.get("nonce", ""))

    @property
    def is_leaving(self) -> bool:
        """Whether the server is about to stop ("lame duck mode")."""
        return self.fields.get("ldm") is True


@dataclass(frozen=True, slots=True)
class Ping:
    """PING: the server expects a PONG."""


@dataclass(frozen=True, slots=True)
class Pong:
    """PONG: the answer to a PING."""


@dataclass(frozen=True, slots=True)
class Okay:
    """+OK: sent in verbose mode only, which this client does not use."""


@dataclass(frozen=True, slots=True)
class ErrorText:
    """-ERR: the reason why the server refuses something; most close the connection."""

    text: str


class Delivered:
    """MSG or HMSG: a message for the subscription ``sid``. ``header`` is its block of headers, empty without one."""

    __slots__ = ("header", "payload", "reply", "sid", "subject")

    def __init__(self, subject: str, sid: int, reply: str, header: bytes, payload: bytes) -> None:
        self.subject = subject
        self.sid = sid
        self.reply = reply
        self.header = header
        self.payload = payload

    def __repr__(self) -> str:
        return f"Delivered({self.subject!r}, {self.sid}, {self.reply!r}, {self.header!r}, {self.payload!r})"


Frame: TypeAlias = Info | Ping | Pong | Okay | ErrorText | Delivered

PING: Final = Ping()
PONG: Final = Pong()
OKAY: Final = Okay()
