"""The options of a client: servers, credentials, TLS, limits and times."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.kernel.errors import ConfigurationError
from gateway_jetstream.client.addresses import ServerAddress
from gateway_jetstream.client.nkeys import Nkey, parse_credentials, parse_seed
from gateway_jetstream.codec.frames import Info


@dataclass(frozen=True, slots=True)
class NatsCredentials:
    """The login of a client: user and password, a token, an nkey, or the JWT and key of a credentials file.

    Those of a URL precede these.
    """

    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    nkey: Nkey | None = None
    jwt: str = field(default="", repr=False)

    @classmethod
    def of_nkey_file(cls, path: Path) -> "NatsCredentials":
        """Return the credentials in a file with a seed. :raises ConfigurationError: if it cannot be used."""
        return cls(nkey=parse_seed(_text_of(path)))

    @classmethod
    def of_credentials_file(cls, path: Path) -> "NatsCredentials":
        """Return those in a ``.creds`` file. :raises ConfigurationError: if it cannot be used."""
        jwt, nkey = parse_credentials(_text_of(path))
        return cls(nkey=nkey, jwt=jwt)

    def fields(self, address: ServerAddress, info: Info) -> dict[str, Any]:  # Any: values of JSON
        """Return the fields of CONNECT that log in to a server."""
        if address.user and address.password:
            return {"user": address.user, "pass": address.password}
        if address.user:
            return {"auth_token": address.user}
        found: dict[str, Any] = {}
        if self.user:
            found |= {"user": self.user, "pass": self.password}
        if self.token:
            found["auth_token"] = self.token
        if self.jwt:
            found["jwt"] = self.jwt
        elif self.nkey is not None:
            found["nkey"] = self.nkey.public
        if self.nkey is not None and info.nonce:
            found["sig"] = self.nkey.signature(info.nonce)
        return found


@dataclass(frozen=True, slots=True)
class NatsTls:
    """TLS: the authorities of servers (the system's by default), and the certificate of this client, if it has one."""

    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """The options of a client. Times are in seconds.

    ``handshake_timeout_s`` limits the login after the TCP connection. A connection without an answer to two PINGs is
    given up. After a failed connection the client waits between half of and the whole ``first_backoff_s``, then twice
    as long, up to ``longest_backoff_s``. ``most_output`` limits the bytes that wait for the socket, ``most_requests``
    the requests that wait for their answers.
    """

    servers: Sequence[ServerAddress]
    name: str = "gateway"
    credentials: NatsCredentials = NatsCredentials()
    tls: NatsTls | None = None
    connect_timeout_s: float = 5.0
    handshake_timeout_s: float = 5.0
    ping_interval_s: float = 10.0
    request_timeout_s: float = 5.0
    first_backoff_s: float = 0.1
    longest_backoff_s: float = 2.0
    most_output: int = 64 * 1024 * 1024
    most_requests: int = 20_000


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from None
