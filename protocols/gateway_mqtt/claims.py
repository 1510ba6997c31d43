"""What a client says of itself in CONNECT, as credentials that authenticators can judge."""

from typing import Final

from gateway.access import Credentials
from gateway_mqtt.packets import Connect
from gateway_mqtt.places import Arrival

PLAIN: Final = "PLAIN"
EXTERNAL: Final = "EXTERNAL"


class NotCredible(Exception):
    """User name and password cannot be anybody's, so no authenticator needs to be asked."""


def claim(connect: Connect, username: str | None, arrival: Arrival, *, certificate_login: bool) -> Credentials | None:
    """Return who the client says it is; ``None`` when it says nothing and is anonymous.

    A password counts more than a certificate, and a certificate serves where there is no password. ``username`` is the
    one without its virtual host.

    :raises NotCredible: for a user name without a password, or a password that is empty or no text.
    """
    if connect.password is not None:
        password = _text(connect.password)
        return Credentials(
            PLAIN, _required(username, connect.version), password, arrival.certificate, arrival.peer_host
        )
    if certificate_login and arrival.certificate is not None:
        return Credentials(EXTERNAL, certificate=arrival.certificate, peer_host=arrival.peer_host)
    if username is not None:
        raise NotCredible("a user name without a password")
    return None


def _required(username: str | None, version: int) -> str:
    """Return the user name; empty for a password alone, which in 5.0 may be a token that names its user (3.1.2.9)."""
    if username is None and version < 5:
        raise NotCredible("a password without a user name")
    return username or ""


def _text(password: bytes) -> str:
    """Return a password. Never an empty one: some directories take it for an anonymous login and say yes."""
    try:
        text = password.decode()
    except UnicodeDecodeError:
        raise NotCredible("a password that is not UTF-8") from None
    if not text:
        raise NotCredible("an empty password")
    return text
