"""nkeys: Ed25519 keys as NATS writes them, and files with a JWT and the seed of its user."""

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.kernel.errors import ConfigurationError

#: The first byte of a seed, and the kind of key that follows it: a user.
_SEED: Final = 18 << 3
_USER: Final = 20 << 3

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z ]+)-----\s*([^-\s]\S*)\s*-+END \1-+")


@dataclass(frozen=True, slots=True)
class Nkey:
    """The key of a user: it signs what the server sends."""

    private: Ed25519PrivateKey = field(repr=False)

    @property
    def public(self) -> str:
        """The public key, as NATS writes it: ``U...``."""
        raw = self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return _written(bytes((_USER,)) + raw)

    def signature(self, nonce: str) -> str:
        """Return the signature of a server's nonce, as CONNECT has it."""
        return base64.urlsafe_b64encode(self.private.sign(nonce.encode())).decode().rstrip("=")


def parse_seed(text: str) -> Nkey:
    """Return the key of a seed ``SU...``. :raises ConfigurationError: if it is none; the text does not repeat it."""
    seed = text.strip()
    try:
        raw = base64.b32decode(seed + "=" * (-len(seed) % 8))
    except (binascii.Error, ValueError):
        raise ConfigurationError("the seed of an nkey is not in base 32") from None
    if len(raw) != 36 or binascii.crc_hqx(raw[:-2], 0) != int.from_bytes(raw[-2:], "little"):
        raise ConfigurationError("the seed of an nkey is damaged: its check sum is wrong")
    kind = (raw[0] & 0x07) << 5 | raw[1] >> 3
    if raw[0] & 0xF8 != _SEED or kind != _USER:
        raise ConfigurationError("the seed of an nkey is not that of a user: it begins with SU")
    return Nkey(Ed25519PrivateKey.from_private_bytes(raw[2:-2]))


def parse_credentials(text: str) -> tuple[str, Nkey]:
    """Return JWT and key of a credentials file. :raises ConfigurationError: if one of them is missing or damaged."""
    blocks = dict(_BLOCK.findall(text))
    jwt, seed = blocks.get("NATS USER JWT"), blocks.get("USER NKEY SEED")
    if jwt is None or seed is None:
        raise ConfigurationError("a credentials file has a NATS USER JWT and a USER NKEY SEED; one of them is missing")
    return jwt, parse_seed(seed)


def _written(raw: bytes) -> str:
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode().rstrip("=")
