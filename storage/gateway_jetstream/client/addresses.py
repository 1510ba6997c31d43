"""Addresses of NATS servers: ``nats://user:password@host:4222``, or ``tls://`` for servers that require TLS."""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from gateway.kernel.errors import ConfigurationError

#: The port of NATS servers for clients.
PORT: Final = 4222


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of a server. ``user`` and ``password`` are those of the URL; a user alone is a token."""

    host: str
    port: int = PORT
    uses_tls: bool = False
    user: str = ""
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        """The address without its secrets, for errors."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'tls' if self.uses_tls else 'nats'}://{host}:{self.port}"


def parse_address(url: str) -> ServerAddress:
    """Return the address in a URL. :raises ConfigurationError: if it is none; the text does not repeat a password."""
    try:
        parts = urlsplit(url if "://" in url else f"nats://{url}")
        port = parts.port
    except ValueError as error:
        raise ConfigurationError(f"the URL of a NATS server cannot be read: {error}") from None
    if parts.scheme not in ("nats", "tls"):
        raise ConfigurationError(f"the URL of a NATS server begins with nats:// or tls://, not with {parts.scheme}://")
    if not parts.hostname or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ConfigurationError("the URL of a NATS server is nats://HOST:PORT, without a path")
    return ServerAddress(
        parts.hostname,
        port or PORT,
        parts.scheme == "tls",
        unquote(parts.username or ""),
        unquote(parts.password or ""),
    )
