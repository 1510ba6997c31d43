"""The errors of the NATS client; each names the server, the subject and the code, as far as there are any."""

from gateway.kernel.errors import GatewayError


class NatsError(GatewayError):
    """A request to a NATS server failed.

    ``server`` is its address, ``subject`` that of the request, ``code`` the number of the error; empty or 0 if there is
    none.
    """

    def __init__(self, reason: str, *, server: str = "", subject: str = "", code: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.server = server
        self.subject = subject
        self.code = code

    def __str__(self) -> str:
        parts = [
            f"server {self.server}" if self.server else "",
            f"subject {self.subject}" if self.subject else "",
            f"code {self.code}" if self.code else "",
        ]
        where = ", ".join(part for part in parts if part)
        return f"{self.reason} ({where})" if where else self.reason


class NatsProtocolError(NatsError):
    """The server violated the protocol, or exceeded a limit of this client; the connection is closed."""


class CannotConnect(NatsError):
    """A server cannot be reached, or refused the connection."""


class Disconnected(NatsError):
    """There is no connection, or it ended before the answer. Whether a request was carried out is unknown."""


class RequestTimedOut(NatsError):
    """The answer did not come in time. Whether the request was carried out is unknown."""


class NoResponders(NatsError):
    """The subject has no subscribers. The request was not carried out."""


class TooMuch(NatsError):
    """A payload, the output buffer or the number of open requests exceeds its limit; nothing was sent."""


class ApiError(NatsError):
    """JetStream refused a request; ``code`` is its ``err_code``."""


class WrongLastSequence(ApiError):
    """10071: the last record of the expected subject is another one. It proves nothing about what is stored."""


class AppendInFlight(ApiError):
    """10164: an earlier append with the same expectation is still in flight."""


class NoPeers(ApiError):
    """10005 or 10008: too few servers are known for a new stream; some have just started, or do not answer in time."""


class StreamNotFound(ApiError):
    """10059: there is no such stream."""


class MessageNotFound(ApiError):
    """10037: there is no such message."""
