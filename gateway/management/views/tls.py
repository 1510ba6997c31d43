"""JSON view of a connection's TLS handshake."""

from gateway.kernel.broker.connections import TlsInfo
from gateway.management.http.routes import Fields


def tls_fields(tls: TlsInfo | None) -> Fields:
    """Return the TLS fields of a connection; ``None`` for missing values."""
    return {
        "peer_cert_issuer": (tls and tls.issuer) or None,
        "peer_cert_subject": (tls and tls.subject) or None,
        "peer_cert_validity": (tls and tls.validity) or None,
        "ssl_cipher": (tls and tls.cipher) or None,
        "ssl_hash": (tls and tls.hash) or None,
        "ssl_key_exchange": (tls and tls.key_exchange) or None,
        "ssl_protocol": (tls and tls.protocol) or None,
    }
