"""Certificates of TLS listeners: the server's own, and the subject of a client's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography import x509
from OpenSSL import SSL, crypto
from twisted.internet.interfaces import IOpenSSLContextFactory
from twisted.internet.ssl import CertificateOptions, TLSVersion
from zope.interface import implementer  # type: ignore[import-untyped]

from gateway.access import CertificateSubject
from gateway.config import TlsSettings
from gateway.kernel.errors import ConfigurationError
from gateway.net.introduced import introduced_of


def subject_of(transport: Any) -> CertificateSubject | None:
    """Return the subject of the verified client certificate; ``None`` without TLS or without a certificate."""
    if (introduced := introduced_of(transport)) is not None:
        return introduced.certificate
    get_certificate = getattr(transport, "getPeerCertificate", None)
    certificate = get_certificate() if get_certificate is not None else None
    if certificate is None:
        return None
    names = [(name.decode(), value.decode()) for name, value in certificate.get_subject().get_components()]
    # RFC 4514 writes the most specific name first, as RabbitMQ does
    distinguished = ",".join(f"{name}={value}" for name, value in reversed(names))
    return CertificateSubject(dict(names).get("CN", ""), distinguished)


def tls_options(settings: TlsSettings) -> CertificateOptions:
    """Return the TLS parameters of a listener. :raises ConfigurationError: when a file is missing or invalid."""
    assert settings.certificate is not None
    assert settings.key is not None
    default = _options(settings, "tls", settings.certificate, settings.key)
    further = ServerNames()
    for file in map(Path, settings.further_certificates):
        options = _options(settings, f"tls.further_certificates: {file}", file, file)
        further.add(file, options.getContext())
    if settings.further_certificates:
        default.getContext().set_tlsext_servername_callback(further.choose)
    return default


def _options(settings: TlsSettings, where: str, certificate: Path, key_file: Path) -> CertificateOptions:
    """Return the parameters with one certificate. ``where`` names it in errors."""
    try:
        chain = crypto_chain(certificate.read_bytes())
        key = crypto.load_privatekey(crypto.FILETYPE_PEM, key_file.read_bytes())
        options = CertificateOptions(
            privateKey=key,
            certificate=chain[0],
            extraCertChain=chain[1:] or None,
            raiseMinimumTo=TLSVersion.TLSv1_3 if settings.min_version == "1.3" else TLSVersion.TLSv1_2,
            caCerts=crypto_chain(settings.ca.read_bytes()) if settings.verify != "off" and settings.ca else None,
            verify=settings.verify != "off",
            requireCertificate=settings.verify == "required",
        )
        options.getContext().set_alpn_select_callback(_no_negotiation)
    except (OSError, SSL.Error, crypto.Error, ValueError) as error:
        raise ConfigurationError(f"{where}: {error or 'not a PEM file'}") from error
    return options


def _no_negotiation(connection: SSL.Connection, offered: list[bytes]) -> Any:
    """Negotiate no protocol (ALPN): a listener has one only.

    Browsers and most HTTP clients offer some. Twisted's own callback answers them with an alert (Twisted 26.10).
    """
    return SSL.NO_OVERLAPPING_PROTOCOLS


class ServerNames:
    """The certificates for clients that name a host (SNI). The first certificate that is valid for a name is used."""

    def __init__(self) -> None:
        self._context_by_name: dict[str, SSL.Context] = {}

    def add(self, file: Path, context: SSL.Context) -> None:
        """Use a certificate for the names in it. :raises ConfigurationError: if it has no name of a host."""
        names = host_names(file.read_bytes())
        if not names:
            raise ConfigurationError(f"tls.further_certificates: {file}: the certificate has no name of a host")
        for name in names:
            self._context_by_name.setdefault(name, context)

    def choose(self, connection: SSL.Connection) -> None:
        """Use the certificate of the name that the client sent, if there is one; called during the handshake."""
        sent = connection.get_servername()
        if sent is None:
            return
        name = sent.decode("ascii", "replace").lower().rstrip(".")
        wildcard = f"*.{name.partition('.')[2]}"
        context = self._context_by_name.get(name) or self._context_by_name.get(wildcard)
        if context is not None:
            connection.set_context(context)


def host_names(pem: bytes) -> list[str]:
    """Return the names of hosts in the first certificate of a PEM file, in lower case: ``*.example.com``.

    :raises ValueError: when there is no certificate that can be read.
    """
    try:
        certificate = x509.load_pem_x509_certificates(pem)[0]
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    except (x509.InvalidVersion, x509.UnsupportedGeneralNameType, x509.DuplicateExtension) as error:
        raise ValueError(str(error)) from None
    return [name.lower() for name in names.get_values_for_type(x509.DNSName)]


@implementer(IOpenSSLContextFactory)
class TlsContext:
    """The TLS parameters of one listener. They can be replaced; existing connections keep the old ones."""

    def __init__(self, settings: TlsSettings) -> None:
        """Read the files. :raises ConfigurationError: when one is missing or invalid."""
        self._options = tls_options(settings)

    def getContext(self) -> Any:  # noqa: N802 - Twisted's name
        """Return the parameters of a new connection; called by Twisted."""
        return self._options.getContext()

    def renewed(self, settings: TlsSettings) -> Callable[[], None]:
        """Read the files again; return a function that makes new connections use them.

        :raises ConfigurationError: when a file is missing or invalid.
        """
        options = tls_options(settings)

        def renew() -> None:
            self._options = options

        return renew


def crypto_chain(pem: bytes) -> list[crypto.X509]:
    """Return the certificates in a PEM file. :raises ValueError: when there is none."""
    end = b"-----END CERTIFICATE-----"
    parts = [part + end for part in pem.split(end)[:-1]]
    if not parts:
        raise ValueError("no certificate in the PEM file")
    return [crypto.load_certificate(crypto.FILETYPE_PEM, part) for part in parts]
