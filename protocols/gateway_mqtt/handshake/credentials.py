"""Conversion of a CONNECT into credentials for the authenticators."""

from typing import Final

from gateway.access import Credentials
from gateway_mqtt.codec.packets import Connect
from gateway_mqtt.handshake.vhost_choice import ConnectionSource

PLAIN: Final = "PLAIN"
EXTERNAL: Final = "EXTERNAL"

#: A user name without a password: some clients send an access token this way.
USER_NAME: Final = "USER-NAME"

#: Neither user name nor certificate: only the client identifier.
CLIENT_ID: Final = "CLIENT-ID"


class InvalidCredentials(Exception):
    """User name and password are invalid for any user, so no authenticator is called."""


def credentials_of(
    connect: Connect, username: str | None, client_id: str, source: ConnectionSource, *, certificate_login: bool
) -> Credentials:
    """Return the credentials in a CONNECT.

    A password has precedence over a certificate. Without either, the mechanism is ``USER-NAME`` or ``CLIENT-ID`` and
    not an empty password, because some LDAP directories accept an empty password as an anonymous login. ``username`` is
    without its virtual host.

    :raises NotCredible: for an empty user name, or a password that is empty or not UTF-8.
    """
    mechanism, name, password = CLIENT_ID, "", ""
    if connect.password is not None:
        mechanism, name, password = PLAIN, _required(username, connect.version), _text(connect.password)
    elif certificate_login and source.certificate is not None:
        mechanism = EXTERNAL
    elif username is not None:
        if not username:
            raise InvalidCredentials("an empty user name")
        mechanism, name = USER_NAME, username
    return Credentials(mechanism, name, password, source.certificate, source.peer_host, client_id)


def _required(username: str | None, version: int) -> str:
    """Return the user name; empty for a password alone, which in 5.0 may be a token with a user (3.1.2.9)."""
    if username is None and version < 5:
        raise InvalidCredentials("a password without a user name")
    return username or ""


def _text(password: bytes) -> str:
    """Return a password. Refuse an empty one: some LDAP directories accept it as an anonymous login."""
    try:
        text = password.decode()
    except UnicodeDecodeError:
        raise InvalidCredentials("a password that is not UTF-8") from None
    if not text:
        raise InvalidCredentials("an empty password")
    return text
