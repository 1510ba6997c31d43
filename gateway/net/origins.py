"""Checks of a browser's request: whether its ``Host`` and ``Origin`` belong to this host or are allowed.

A browser reports the page in ``Origin``, which other clients leave out, and the host in ``Host``. A name that an
attacker's DNS resolves to this machine (DNS rebinding) makes a foreign page look like one of this host.
"""

import socket
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

#: In a list of allowed names: everything.
ANY: Final = "*"

_HOSTS: Final = Path("/etc/hosts")

_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}


@dataclass(frozen=True, slots=True)
class OriginRules:
    """The foreign pages and host names that are allowed besides the host's own.

    ``origins`` are like ``https://console.example.com``, ``hosts`` are names without a port; ``*`` matches any. With
    ``any_port``, pages of the same host at another port are allowed as well.
    """

    origins: Collection[str] = ()
    hosts: Collection[str] = ()
    any_port: bool = False

    def allows(self, origin: str) -> bool:
        """Return whether an origin is in the list."""
        return ANY in self.origins or origin.lower().rstrip("/") in {each.lower().rstrip("/") for each in self.origins}

    def is_own_name(self, host: str) -> bool:
        """Return whether a ``Host`` cannot come from a foreign DNS: an address, a name of this machine, or an allowed
        name.
        """
        name = name_of(host)
        return ANY in self.hosts or name in {each.lower() for each in self.hosts} or is_own(name)

    def refusal(self, host: str, origin: str | None, *, is_local: bool) -> str | None:
        """Return the reason to refuse a request, ``None`` to allow it.

        ``is_local``: the request came to a loopback address, which only users of this machine can reach.
        """
        if (is_local or self.hosts) and not self.is_own_name(host):
            return "the Host is no name of this machine that is allowed"
        if origin is None or self.allows(origin) or self._is_same(origin, host):
            return None
        return "the Origin is another page's, which no setting allows"

    def _is_same(self, origin: str, host: str) -> bool:
        theirs, ours = _parts(origin, ""), _parts(f"//{host}", origin.partition(":")[0])
        if theirs is None or ours is None:
            return False
        if not self.any_port:
            return theirs == ours
        return theirs[0] == ours[0] or (_is_loopback(theirs[0]) and _is_loopback(ours[0]))


def name_of(host: str) -> str:
    """Return the name or address in a ``Host`` header, without the port, in lower case; empty if it is malformed."""
    parts = _parts(f"//{host}", "http")
    return "" if parts is None else parts[0]


def is_own(name: str) -> bool:
    """Return whether a name is an address, ``localhost``, or known to this machine without DNS."""
    return _is_address(name) or _is_loopback(name) or name in _own_names()


@lru_cache(maxsize=1)
def _own_names() -> frozenset[str]:
    """Return the machine's host name, and the names in its hosts file."""
    name = socket.gethostname().lower()
    names = {name, name.partition(".")[0]}
    with suppress(OSError):
        for line in _HOSTS.read_text(encoding="utf-8", errors="replace").splitlines():
            names.update(line.partition("#")[0].lower().split()[1:])
    return frozenset(names)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    return _is_address(name) and ip_address(name).is_loopback


def _parts(url: str, scheme: str) -> tuple[str, int | None] | None:
    """Return host and port of an URL; ``None`` if it has none, as the origin ``null``."""
    try:
        split = urlsplit(url)
        host, port = split.hostname, split.port
    except ValueError:
        return None
    if not host or split.path not in ("", "/") or split.query or split.fragment or "@" in split.netloc:
        return None
    return host.rstrip("."), port or _DEFAULT_PORTS.get(split.scheme or scheme)
