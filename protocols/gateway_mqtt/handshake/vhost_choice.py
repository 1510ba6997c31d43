"""Selection of a client's virtual host as in RabbitMQ: by certificate, port, user name or default."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from gateway.access import CertificateSubject
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.kernel.messages.message import Value

PORTS: Final = "mqtt_port_to_vhost_mapping"
"""The global parameter that maps ports, as text, to virtual hosts."""

CERTIFICATES: Final = "mqtt_default_vhosts"
"""The global parameter that maps distinguished or common names of client certificates to virtual hosts."""


class ConnectionSource(NamedTuple):
    """Connection data from the listener: the peer's address, the local port and the client certificate.

    ``is_from_page`` marks a WebSocket opened by a web page, which may be of any origin.
    """

    peer_host: str
    port: int
    certificate: CertificateSubject | None = None
    is_from_page: bool = False


class VhostChoice(NamedTuple):
    """A virtual host's name, and the user name without it."""

    vhost: str
    username: str | None


def choose_vhost(
    username: str | None,
    source: ConnectionSource,
    parameters: Mapping[tuple[Value, ...], ParameterRecord],
    default_vhost: str,
    *,
    ignores_colons: bool = False,
) -> VhostChoice:
    """Return a client's virtual host.

    Without a certificate a user name of the form ``vhost:user`` has precedence over the port. With one, the names in
    the certificate come first, then the port, then the user name.
    """
    named = None if ignores_colons else _named(username)
    port = _mapped(parameters, PORTS, str(source.port), username)
    default = VhostChoice(default_vhost, username)
    if (subject := source.certificate) is None:
        return named or port or default
    by_certificate = _mapped(parameters, CERTIFICATES, subject.distinguished_name, username) or _mapped(
        parameters, CERTIFICATES, subject.common_name, username
    )
    return by_certificate or port or named or default


def _named(username: str | None) -> VhostChoice | None:
    """Split at the last colon: the virtual host may contain colons, the user name then cannot."""
    vhost, colon, user = (username or "").rpartition(":")
    return VhostChoice(vhost, user) if colon else None


def _mapped(
    parameters: Mapping[tuple[Value, ...], ParameterRecord], name: str, key: str, username: str | None
) -> VhostChoice | None:
    """Return the mapping's virtual host for a key; a parameter of the wrong type is ignored."""
    parameter = parameters.get(("", "", name))
    vhost = parameter.value.get(key) if parameter is not None and isinstance(parameter.value, Mapping) else None
    return VhostChoice(vhost, username) if isinstance(vhost, str) else None
