"""auth-certificate: login by TLS client certificate, with the EXTERNAL mechanism.

The TLS listener has verified the certificate. The user it names must exist in the internal database, which also holds
its permissions. The setting ``login_from`` selects the name: ``common_name`` or ``distinguished_name`` (default).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

from gateway.api import (
    Authenticator,
    CertificateSubject,
    Credentials,
    Directory,
    PluginSettings,
    Principal,
    hookimpl,
)
from gateway_auth.internal import internal_principal

NAME_FROM: Final[Mapping[str, Callable[[CertificateSubject], str]]] = {
    "common_name": lambda subject: subject.common_name,
    "distinguished_name": lambda subject: subject.distinguished_name,
}


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
        return internal_principal(user) if user is not None else None


class CertificateSettings(PluginSettings):
    """The settings of ``auth-certificate``."""

    login_from: Literal["common_name", "distinguished_name"] = "distinguished_name"
    """The part of the certificate's subject that is the user name."""


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the setting ``login_from``."""
    return CertificateSettings


@hookimpl
def gateway_authenticators(directory: Directory, settings: CertificateSettings) -> Sequence[Authenticator]:
    """Offer the certificate authenticator."""
    return [CertificateAuthenticator(directory, NAME_FROM[settings.login_from])]
