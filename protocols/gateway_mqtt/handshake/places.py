"""Which virtual host a client enters, as RabbitMQ decides: by certificate, port, user name or setting."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.access import CertificateSubject
from gateway.kernel.journal.records import ParameterRecord
from gateway.kernel.messages.message import Value

PORTS: Final = "mqtt_port_to_vhost_mapping"
"""The global parameter that maps ports, written as text, to virtual hosts."""

CERTIFICATES: Final = "mqtt_default_vhosts"
"""The global parameter that maps the names in client certificates, distinguished or common, to virtual hosts."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What the listener knows of a connection: where it comes from, by which port of ours, with whose certificate.

    One that ``is_from_page`` was opened by a browser for a web page, which may be of any origin.
    """

    peer_host: str
    port: int
    certificate: CertificateSubject | None = None
    is_from_page: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A virtual host by name, and the user name without it."""

    vhost: str
    username: str | None


def place_of(
    username: str | None,
    arrival: Arrival,
    parameters: Mapping[tuple[Value, ...], ParameterRecord],
    default_vhost: str,
    *,
    ignores_colons: bool = False,
) -> Place:
    """Return where a client belongs.

    A user name of the form ``vhost:user`` counts before the port for those without a certificate, and after it for
    those with one, whose name in the certificate counts first of all.
    """
    named = None if ignores_colons else _named(username)
    port = _mapped(parameters, PORTS, str(arrival.port), username)
    default = Place(default_vhost, username)
    if (subject := arrival.certificate) is None:
        return named or port or default
    by_certificate = _mapped(parameters, CERTIFICATES, subject.distinguished_name, username) or _mapped(
        parameters, CERTIFICATES, subject.common_name, username
    )
    return by_certificate or port or named or default


def _named(username: str | None) -> Place | None:
    """Split at the last colon: names of users hold none then, names of virtual hosts may."""
    vhost, colon, user = (username or "").rpartition(":")
    return Place(vhost, user) if colon else None


def _mapped(
    parameters: Mapping[tuple[Value, ...], ParameterRecord], name: str, key: str, username: str | None
) -> Place | None:
    """Return what an operator's mapping says; what is no mapping, or to no text, says nothing."""
    parameter = parameters.get(("", "", name))
    vhost = parameter.value.get(key) if parameter is not None and isinstance(parameter.value, Mapping) else None
    return Place(vhost, username) if isinstance(vhost, str) else None
