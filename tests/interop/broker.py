"""The broker under test: a new gateway, or any broker named by a URL."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

PROJECT: Final = Path(__file__).resolve().parents[2]

#: Set to ``amqp://user:password@host:port/vhost`` to run the suite against a running broker.
BROKER_URL: Final = os.environ.get("GATEWAY_TEST_AMQP_URL")

#: Set to the URL of the same broker's management API, with its login.
MANAGEMENT_URL: Final = os.environ.get("GATEWAY_TEST_MANAGEMENT_URL")


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker's address and login. ``pid`` is 0 for a broker that the tests did not start."""

    host: str
    port: int
    user: str = "guest"
    password: str = "guest"
    vhost: str = "/"
    pid: int = 0

    @classmethod
    def from_url(cls, url: str) -> "Broker":
        """Read ``amqp://user:password@host:port/vhost``; an absent vhost is ``/``."""
        parts = urlsplit(url)
        return cls(
            host=parts.hostname or "127.0.0.1",
            port=parts.port or 5672,
            user=unquote(parts.username or "guest"),
            password=unquote(parts.password or "guest"),
            vhost=unquote(parts.path[1:]) or "/",
        )

    @property
    def url(self) -> str:
        """The same broker as a URL, with the vhost percent-encoded (``/`` is ``%2F``)."""
        credentials = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        return f"amqp://{credentials}@{self.host}:{self.port}/{quote(self.vhost, safe='')}"
