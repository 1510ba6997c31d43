"""The address of the management API, from ``--url``."""

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from gateway.cli.ctl.errors import WrongUsage

PORTS = {"http": 15672, "https": 15671}


@dataclass(frozen=True, slots=True)
class ApiAddress:
    """Address of a management API. ``user`` and ``password`` are those of the URL, or ``None``."""

    scheme: str
    host: str
    port: int
    prefix: str = ""
    user: str | None = None
    password: str | None = None

    @classmethod
    def parse(cls, url: str) -> "ApiAddress":
        """Parse ``http://host:port``; the port has a default. :raises WrongUsage: for anything else."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            # The error may have a part of the password, in which the URL has characters that end the host.
            reason = str(error) if "@" not in url else "in a password / is %2F, ? is %3F, # is %23 and @ is %40"
            raise WrongUsage(f"{_without_login(url)!r} is not a URL: {reason}") from None
        if parts.scheme not in PORTS or not parts.hostname or "@" in parts.path:
            raise WrongUsage(f"{_without_login(url)!r} is not a URL such as http://127.0.0.1:15672")
        return cls(
            scheme=parts.scheme,
            host=parts.hostname,
            port=PORTS[parts.scheme] if port is None else port,
            prefix=parts.path.rstrip("/"),
            user=None if parts.username is None else unquote(parts.username),
            password=None if parts.password is None else unquote(parts.password),
        )

    @property
    def url(self) -> str:
        """The address as a URL, without credentials: safe to print."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}"


def _without_login(url: str) -> str:
    """Return a malformed URL that may be printed."""
    before, at, address = url.rpartition("@")
    return f"{before.partition('://')[0]}://***@{address}" if at else url
