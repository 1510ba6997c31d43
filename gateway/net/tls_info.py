"""The result of a TLS handshake, in RabbitMQ's terms."""

from typing import Any

from OpenSSL.crypto import X509

from gateway.kernel.broker.connections import TlsInfo
from gateway.net.introduced import introduced_of

#: OpenSSL's short names of bulk ciphers in the order of the search, and their names in TLS.
_CIPHERS = {
    "AES128-GCM": "aes_128_gcm",
    "AES256-GCM": "aes_256_gcm",
    "AES_128_GCM": "aes_128_gcm",
    "AES_256_GCM": "aes_256_gcm",
    "AES128-CCM8": "aes_128_ccm_8",
    "AES256-CCM8": "aes_256_ccm_8",
    "AES_128_CCM_8": "aes_128_ccm_8",
    "AES128-CCM": "aes_128_ccm",
    "AES256-CCM": "aes_256_ccm",
    "AES_128_CCM": "aes_128_ccm",
    "CHACHA20": "chacha20_poly1305",
    "AES128": "aes_128_cbc",
    "AES256": "aes_256_cbc",
}
_WITH_AUTHENTICATION = ("gcm", "ccm", "poly1305")
_KEY_EXCHANGES = ("ECDHE-RSA", "ECDHE-ECDSA", "DHE-RSA", "DHE-DSS")


def is_tls(transport: Any) -> bool:  # Any: Twisted's interfaces are not types
    """Whether the client uses TLS, up to this node or up to the one that forwards it."""
    if (introduced := introduced_of(transport)) is not None:
        return introduced.tls is not None
    return hasattr(transport, "getPeerCertificate")


def tls_info(transport: Any) -> TlsInfo | None:
    """Return the negotiated parameters; ``None`` without TLS, or before the handshake is complete."""
    if (introduced := introduced_of(transport)) is not None:
        return introduced.tls
    if not hasattr(transport, "getPeerCertificate"):
        return None
    connection = transport.getHandle()
    name = connection.get_cipher_name()
    if name is None:
        return None
    key_exchange, cipher, hash = cipher_parts(name)
    certificate = transport.getPeerCertificate()
    return TlsInfo(
        protocol=connection.get_protocol_version_name().lower(),
        cipher=cipher,
        key_exchange=key_exchange,
        hash=hash,
        subject="" if certificate is None else distinguished(certificate.get_subject()),
        issuer="" if certificate is None else distinguished(certificate.get_issuer()),
        validity="" if certificate is None else validity(certificate),
    )


def cipher_parts(name: str) -> tuple[str, str, str]:
    """Return key exchange, cipher and hash of an OpenSSL cipher suite name.

    The hash of an authenticated cipher is ``aead``. Suites of TLS 1.3 do not specify the key exchange.
    """
    cipher = next((ours for theirs, ours in _CIPHERS.items() if theirs in name), name.lower())
    hash = "aead" if any(kind in cipher for kind in _WITH_AUTHENTICATION) else name.rpartition("-")[2].lower()
    if name.startswith("TLS_"):
        return "any", cipher, hash
    exchange = next((each for each in _KEY_EXCHANGES if name.startswith(each)), "RSA")
    return exchange.lower().replace("-", "_"), cipher, hash


def distinguished(name: Any) -> str:
    """Return a distinguished name in the form of RFC 4514, the most specific part first, as RabbitMQ does."""
    return ",".join(f"{kind.decode()}={value.decode()}" for kind, value in reversed(name.get_components()))


def validity(certificate: X509) -> str:
    """Return a certificate's period of validity: ``2026-01-01T00:00:00Z - 2027-01-01T00:00:00Z``."""
    ends = certificate.to_cryptography()
    start, end = ends.not_valid_before_utc, ends.not_valid_after_utc
    return f"{start:%Y-%m-%dT%H:%M:%SZ} - {end:%Y-%m-%dT%H:%M:%SZ}"
