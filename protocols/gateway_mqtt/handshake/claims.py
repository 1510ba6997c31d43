"""What a client says of itself in CONNECT, as credentials that authenticators can judge."""

from typing import Final

from gateway.access import Credentials
from gateway_mqtt.codec.packets import Connect
from gateway_mqtt.handshake.places import Arrival

PLAIN: Final = "PLAIN"
EXTERNAL: Final = "EXTERNAL"

#: A user name without a password: access tokens are sent so.
USER_NAME: Final = "USER-NAME"

#: Neither: the client identifier alone.
CLIENT_ID: Final = "CLIENT-ID"


class NotCredible(Exception):
    """User name and password cannot be anybody's, so no authenticator needs to be asked."""


def claim(
    connect: Connect, username: str | None, client_id: str, arrival: Arrival, *, certificate_login: bool
) -> Credentials:
    """Return who the client says it is.

    A password counts more than a certificate, and a certificate serves where there is no password. Without either, the
    mechanism says so: an empty password would be a way in where a directory takes it for an anonymous login.
    ``username`` is the one without its virtual host.

    :raises NotCredible: for a user name that is empty, or a password that is empty or no text.
    """
    mechanism, name, password = CLIENT_ID, "", ""
    if connect.password is not None:
        mechanism, name, password = PLAIN, _required(username, connect.version), _text(connect.password)
    elif certificate_login and arrival.certificate is not None:
        mechanism = EXTERNAL
    elif username is not None:
        if not username:
            raise NotCredible("an empty user name")
        mechanism, name = USER_NAME, username
    return Credentials(mechanism, name, password, arrival.certificate, arrival.peer_host, client_id)


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
