"""TLS of a client connection."""

from typing import Any

from twisted.internet.ssl import (
    Certificate,
    PrivateCertificate,
    optionsForClientTLS,
    trustRootFromCertificates,
)

from gateway.kernel.errors import ConfigurationError
from gateway_jetstream.client.options import NatsTls

_CERTIFICATE_END = b"-----END CERTIFICATE-----"


def tls_context(host: str, options: NatsTls) -> Any:  # Any: Twisted has no types
    """Return what starts TLS with a server, whose name is verified. :raises ConfigurationError: for unusable files."""
    trust = None
    own = None
    try:
        if options.ca_file is not None:
            parts = options.ca_file.read_bytes().split(_CERTIFICATE_END)[:-1]
            if not parts:
                raise ConfigurationError(f"{options.ca_file} has no certificate")
            certificates = [Certificate.loadPEM(part + _CERTIFICATE_END) for part in parts]
            trust = trustRootFromCertificates(certificates)  # type: ignore[no-untyped-call]  # Twisted's
        if options.certificate_file is not None:
            key_file = options.key_file or options.certificate_file
            pem = options.certificate_file.read_bytes() + b"\n" + key_file.read_bytes()
            own = PrivateCertificate.loadPEM(pem)  # type: ignore[no-untyped-call]  # Twisted's
    except ConfigurationError:
        raise
    except Exception as error:  # OpenSSL's errors have no common base
        raise ConfigurationError(f"the certificates for NATS cannot be used: {error}") from None
    return optionsForClientTLS(host, trustRoot=trust, clientCertificate=own)
