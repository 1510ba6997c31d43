"""SASL in AMQP 0-9-1: from a mechanism's response to credentials (PLAIN, AMQPLAIN, EXTERNAL)."""

from typing import Final

from gateway.access import CertificateSubject, Credentials
from gateway.kernel.errors import ProtocolViolation
from gateway_amqp.tables import decode_fields

PLAIN: Final = "PLAIN"
AMQPLAIN: Final = "AMQPLAIN"
EXTERNAL: Final = "EXTERNAL"


def credentials(
    mechanism: str, response: bytes, peer_host: str, certificate: CertificateSubject | None, offered: str
) -> Credentials:
    """Return the credentials in a client's response.

    :raises ProtocolViolation: when the mechanism was not offered, or the response is malformed.
    """
    if mechanism not in offered.split():
        raise ProtocolViolation(f"unknown authentication mechanism '{mechanism}'")
    if mechanism == EXTERNAL:
        return Credentials(EXTERNAL, certificate=certificate, peer_host=peer_host)
    username, password = _plain(response) if mechanism == PLAIN else _amqplain(response)
    return Credentials(mechanism, username, password, certificate=certificate, peer_host=peer_host)


def _plain(response: bytes) -> tuple[str, str]:
    """``NUL user NUL password`` (RFC 4616); an authorization identity is not supported, as in RabbitMQ."""
    parts = response.split(b"\0")
    if len(parts) != 3 or parts[0]:
        raise ProtocolViolation("response of mechanism PLAIN is not NUL, user, NUL, password")
    return _text(parts[1]), _text(parts[2])


def _amqplain(response: bytes) -> tuple[str, str]:
    """A field table without its length, with LOGIN and PASSWORD."""
    fields = decode_fields(response)
    username, password = fields.get("LOGIN"), fields.get("PASSWORD")
    if not isinstance(username, str) or not isinstance(password, str):
        raise ProtocolViolation("response of mechanism AMQPLAIN lacks LOGIN or PASSWORD")
    return username, password


def _text(octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        raise ProtocolViolation("user name or password is not UTF-8") from None
