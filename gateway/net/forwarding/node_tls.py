"""TLS between nodes: each has a certificate of its own, which the others know by its fingerprint.

The key is made at the start and never leaves the process. The fingerprint is in the lease of the leader, which comes
the way of the secret by which nodes recognise each other; so no files and no authority are needed.
"""

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from OpenSSL import crypto
from twisted.internet.ssl import CertificateOptions, TLSVersion

#: The first byte of a TLS connection, which begins with a handshake record (RFC 8446, 5.1).
HANDSHAKE: Final = 0x16

#: The period of validity is not checked: the fingerprint decides.
_VALID: Final = timedelta(days=3650)


class NodeTls:
    """The certificate of one process. ``fingerprint`` is the SHA-256 of it, in hexadecimal."""

    def __init__(self, node: str) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, node[:64] or "gateway")])
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        signed = builder.not_valid_before(now - _VALID).not_valid_after(now + _VALID).sign(key, SHA256())
        self.fingerprint = sha256(signed.public_bytes(Encoding.DER)).hexdigest()
        self.server = CertificateOptions(
            privateKey=crypto.PKey.from_cryptography_key(key),
            certificate=crypto.X509.from_cryptography(signed),
            raiseMinimumTo=TLSVersion.TLSv1_3,
        )
        self.client = CertificateOptions(raiseMinimumTo=TLSVersion.TLSv1_3)


def has_certificate(transport: Any, fingerprint: str) -> bool:  # Any: Twisted's interfaces are not types
    """Whether the other side of a TLS connection has the certificate with this fingerprint."""
    certificate = transport.getPeerCertificate()
    if certificate is None:
        return False
    found = sha256(crypto.dump_certificate(crypto.FILETYPE_ASN1, certificate)).hexdigest()
    return compare_digest(found, fingerprint)
