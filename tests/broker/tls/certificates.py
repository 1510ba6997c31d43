"""A certificate authority for the tests of TLS."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates and stores them with their keys as PEM files in a directory."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        certificate = self._signed(self._name, self._key.public_key(), is_authority=True)
        self.certificate = self._written(f"{name}.pem", certificate.public_bytes(serialization.Encoding.PEM))

    def sign(self, common_name: str, *hosts: str) -> tuple[Path, Path]:
        """Return the files of a new certificate, valid for these hosts and 127.0.0.1, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(_named(common_name), key.public_key(), False, hosts)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return (
            self._written(f"{common_name}.pem", certificate.public_bytes(serialization.Encoding.PEM)),
            self._written(f"{common_name}.key", private),
        )

    def sign_together(self, common_name: str, *hosts: str) -> Path:
        """Return the file of a new certificate and its key."""
        certificate, key = self.sign(common_name, *hosts)
        return self._written(f"{common_name}-both.pem", certificate.read_bytes() + key.read_bytes())

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, is_authority: bool, hosts: tuple[str, ...] = ()
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        names = [*map(x509.DNSName, hosts), x509.IPAddress(ip_address("127.0.0.1"))]
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
        )
        return builder.sign(self._key, hashes.SHA256())

    def _written(self, name: str, pem: bytes) -> Path:
        file = self._directory / name
        file.write_bytes(pem)
        return file


def _named(common_name: str) -> x509.Name:
    return x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "acme"), x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    )
