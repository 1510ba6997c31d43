"""The server under test: the listeners of a gateway started for the session, or any server named by a URL."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self
from urllib.parse import quote, unquote, urlsplit

from tests.interop.gateways import gateway_in
from tests.running import Gateway


@dataclass(frozen=True, slots=True)
class Server:
    """A server's address and login. ``ports`` are the ports of the gateway's listeners by name.

    ``protocol`` is the name of the listener and the URL scheme, ``default_user`` the user of a URL without one,
    ``settings`` the settings of every gateway started here.
    """

    protocol: ClassVar[str]
    usual_port: ClassVar[int]
    default_user: ClassVar[str] = "guest"
    settings: ClassVar[tuple[str, ...]] = ()

    host: str
    port: int
    user: str = "guest"
    password: str = "guest"
    ports: dict[str, int] = field(default_factory=dict)

    @classmethod
    def from_url(cls, url: str) -> Self:
        """Read ``protocol://user:password@host:port``."""
        parts = urlsplit(url)
        host, port = parts.hostname or "127.0.0.1", parts.port or cls.usual_port
        login = unquote(parts.username or cls.default_user), unquote(parts.password or cls.default_user)
        return cls(host, port, *login, {cls.protocol: port})

    @classmethod
    def of(cls, gateway: Gateway) -> Self:
        """Return the server of a running gateway."""
        ports = {name: port for name, (_, port) in gateway.addresses.items()}
        return cls("127.0.0.1", ports[cls.protocol], ports=ports)

    @classmethod
    @contextmanager
    def running(cls, directory: Path, *settings: str) -> Iterator[Self]:
        """Run a gateway with further settings; SIGTERM must stop it with success."""
        with gateway_in(directory, *cls.settings, *settings) as gateway:
            yield cls.of(gateway)
            exit_code = gateway.stop()
            assert exit_code == 0, f"the gateway stopped with exit code {exit_code}:\n{gateway.log}"

    @property
    def login(self) -> str:
        """The login part of a URL."""
        return f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
