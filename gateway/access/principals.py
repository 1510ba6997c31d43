"""Credentials of clients, and authenticated principals."""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import TypeGuard


@dataclass(frozen=True, slots=True)
class CertificateSubject:
    """The names in a client certificate that the TLS layer has verified."""

    common_name: str
    distinguished_name: str


@dataclass(frozen=True, slots=True)
class Credentials:
    """Login data of a client.

    ``mechanism`` is a SASL name: ``PLAIN``, ``AMQPLAIN``, ``EXTERNAL``. ``username`` is empty with EXTERNAL. Two more
    mechanisms have no password: ``USER-NAME``, whose user name may be an access token, and ``CLIENT-ID``, with only a
    ``client_id``. ``BEARER`` has only an access token of HTTP as password. An authenticator must check the mechanism
    first.
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
    """An authenticated user. ``peer_host`` is its address, empty if the authenticator does not keep it.

    ``grant`` holds the permissions that came with the login, such as a token's; only the authorizer that understands it
    returns permissions then. ``expires_at_s`` is the Unix time at which the connection ends; 0 is never.
    ``client_id`` is the identifier of an MQTT client, which the broker adds to what an authenticator answers; any
    client may claim any identifier. ``accepted_by`` is the plugin whose permissions apply; if an authenticator leaves
    it empty, that is its own plugin.
    """

    name: str
    tags: frozenset[str] = frozenset()
    peer_host: str = field(default="", compare=False)
    grant: object = field(default=None, compare=False, repr=False)
    expires_at_s: float = field(default=0.0, compare=False)
    accepted_by: str = field(default="", compare=False)
    client_id: str = field(default="", compare=False)

    @property
    def has_plugin(self) -> bool:
        """Whether the authenticator says which plugin's permissions apply."""
        return bool(self.accepted_by)

    def of_client(self, client_id: str) -> "Principal":
        """Return the same principal with the identifier of its MQTT client."""
        if type(self) is not Principal:
            return replace(self, client_id=client_id)
        return Principal(
            self.name, self.tags, self.peer_host, self.grant, self.expires_at_s, self.accepted_by, client_id
        )


def is_principal(answer: object) -> TypeGuard[Principal]:
    """Whether the answer of a plugin is a principal whose name is a text: compiled code refuses any other name."""
    return isinstance(answer, Principal) and isinstance(answer.name, str)


@lru_cache(1024)  # each login asks twice, and parsing takes 5 µs
def is_loopback(host: str) -> bool:
    """Whether an address is a loopback address, including IPv4 on an IPv6 socket (``::ffff:127.0.0.1``)."""
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
