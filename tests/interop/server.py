"""A server under test: the listeners of a gateway started for the session, or any server named by a URL."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self
from urllib.parse import quote, unquote, urlsplit

from tests.running import Gateway, gateway_in


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server listens, and who may log in. ``ports`` are those of the gateway's listeners, by name.

    ``protocol`` is the name of the listener and of URLs, ``nobody`` the user of a URL without one, ``settings`` what
    tests ask of every gateway.
    """

    protocol: ClassVar[str]
    usual_port: ClassVar[int]
    nobody: ClassVar[str] = "guest"
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
        login = unquote(parts.username or cls.nobody), unquote(parts.password or cls.nobody)
        return cls(host, port, *login, {cls.protocol: port})

    @classmethod
    def of(cls, gateway: Gateway) -> Self:
        """Return what a running gateway offers."""
        ports = {name: port for name, (_, port) in gateway.addresses.items()}
        return cls("127.0.0.1", ports[cls.protocol], ports=ports)

    @classmethod
    @contextmanager
    def running(cls, directory: Path, *settings: str) -> Iterator[Self]:
        """Run a gateway with further settings; stopping it by SIGTERM must succeed."""
        with gateway_in(directory, *cls.settings, *settings) as gateway:
            yield cls.of(gateway)
            exit_code = gateway.stop()
            assert exit_code == 0, f"the gateway stopped with exit code {exit_code}:\n{gateway.log}"

    @property
    def login(self) -> str:
        """Who may log in, as in a URL."""
        return f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
