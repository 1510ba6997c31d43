"""A report of the versions, cipher suites and certificates of TLS."""

import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from gateway.config import TlsSettings
from gateway.net.certificates import host_names, tls_options

#: Versions from the newest to the oldest, with Python's flags of what OpenSSL was built with.
_VERSIONS: Final = (
    ("tlsv1.3", ssl.HAS_TLSv1_3),
    ("tlsv1.2", ssl.HAS_TLSv1_2),
    ("tlsv1.1", ssl.HAS_TLSv1_1),
    ("tlsv1", ssl.HAS_TLSv1),
)


def tls_report(settings: TlsSettings) -> Mapping[str, Any]:
    """Return RabbitMQ's names of versions, OpenSSL's names of suites, and a row for each certificate file.

    :raises ConfigurationError: if a file of a certificate is missing or invalid.
    """
    versions = [name for name, is_supported in _VERSIONS if is_supported]
    allowed = [name for name in versions if name == "tlsv1.3" or (name == "tlsv1.2" and settings.min_version == "1.2")]
    return {
        "library": ssl.OPENSSL_VERSION,
        "versions": versions,
        "allowed_versions": allowed,
        "cipher_suites": _suites(settings),
        "certificates": list(_certificates(settings)),
    }


def _suites(settings: TlsSettings) -> list[str]:
    """Return the cipher suites that listeners accept; those of the library without a certificate."""
    if settings.certificate is None:
        return [str(suite["name"]) for suite in ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).get_ciphers()]
    from OpenSSL import SSL

    return SSL.Connection(tls_options(settings).getContext(), None).get_cipher_list()


def _certificates(settings: TlsSettings) -> Iterator[dict[str, Any]]:
    for file in settings.certificates:
        pem = file.read_bytes()
        found = x509.load_pem_x509_certificates(pem)[0]
        yield {
            "file": str(file),
            "is_default": file == settings.certificate,
            "subject": found.subject.rfc4514_string(),
            "issuer": found.issuer.rfc4514_string(),
            "host_names": host_names(pem),
            "not_before": found.not_valid_before_utc.isoformat(),
            "not_after": found.not_valid_after_utc.isoformat(),
            "sha256": found.fingerprint(SHA256()).hex(":"),
            "chain_length": _chain_length(file),
        }


def _chain_length(file: Path) -> int:
    return len(x509.load_pem_x509_certificates(file.read_bytes()))
