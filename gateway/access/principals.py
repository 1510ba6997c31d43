"""Who connects: what a client says of itself, and who it turned out to be."""

from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address


@dataclass(frozen=True, slots=True)
class CertificateSubject:
    """The names in a client's certificate, which the TLS layer has verified."""

    common_name: str
    distinguished_name: str


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client says of itself when it logs in.

    ``mechanism`` is SASL's name: ``PLAIN``, ``AMQPLAIN``, ``EXTERNAL``. ``username`` is empty with EXTERNAL. Two more
    say that there is no password: ``USER-NAME``, where the user name may be an access token, and ``CLIENT-ID``, where
    the client gave its ``client_id`` alone. Who judges these looks at the mechanism first.
    """

    mechanism: str
    username: str = ""
    password: str = field(default="", repr=False)
    certificate: CertificateSubject | None = None
    peer_host: str = ""
    client_id: str = ""

    @property
    def is_loopback(self) -> bool:
        """Whether the client is on this machine."""
        return is_loopback(self.peer_host)


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who was authenticated."""

    name: str
    tags: frozenset[str] = frozenset()


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own, also when IPv4 arrives over an IPv6 socket (``::ffff:127.0.0.1``)."""
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
