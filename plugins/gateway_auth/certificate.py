"""auth-certificate: login by TLS client certificate, with the EXTERNAL mechanism.

The TLS listener has verified the certificate. The user it names must exist in the internal database, which also holds
its permissions. The setting ``login_from`` selects the name: ``common_name`` or ``distinguished_name`` (default).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gateway.api import (
    Authenticator,
    CertificateSubject,
    ConfigurationError,
    Credentials,
    Directory,
    Principal,
    Value,
    hookimpl,
)

NAME_FROM: Final[Mapping[str, Callable[[CertificateSubject], str]]] = {
    "common_name": lambda subject: subject.common_name,
    "distinguished_name": lambda subject: subject.distinguished_name,
}
DEFAULT: Final = "distinguished_name"


class CertificateAuthenticator:
    """Authenticates a client by the user name in its certificate."""

    def __init__(self, directory: Directory, name_from: Callable[[CertificateSubject], str]) -> None:
        self._directory = directory
        self._name_from = name_from

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Call ``answer`` at once."""
        answer(self._principal(credentials))

    def _principal(self, credentials: Credentials) -> Principal | None:
        if credentials.mechanism != "EXTERNAL" or credentials.certificate is None:
            return None
        user = self._directory.user(self._name_from(credentials.certificate))
        return Principal(user.name, frozenset(map(str, user.tags))) if user is not None else None


@hookimpl
def gateway_authenticators(directory: Directory, settings: Mapping[str, Value]) -> Sequence[Authenticator]:
    """Offer the certificate authenticator."""
    unknown = set(settings) - {"login_from"}
    if unknown:
        raise ConfigurationError(f"{', '.join(sorted(unknown))}: unknown setting; the only setting is login_from")
    login_from = settings.get("login_from", DEFAULT)
    if not isinstance(login_from, str) or login_from not in NAME_FROM:
        raise ConfigurationError(f"login_from: must be {' or '.join(NAME_FROM)}, not {login_from!r}")
    return [CertificateAuthenticator(directory, NAME_FROM[login_from])]
