"""auth-scram: SCRAM-SHA-256 (RFC 5802, RFC 7677), which proves a password without sending it.

Only users whose password was set in clear, here, can use it: a hash from elsewhere does not lead to the keys that are
needed. Whoever cannot is refused no earlier and no otherwise than with a wrong password.
"""

import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from gateway.api import (
    Answer,
    AuthenticationMethod,
    Challenge,
    Directory,
    Failure,
    Principal,
    ScramCredential,
    Success,
    Visitor,
    hookimpl,
)

NAME: Final = "SCRAM-SHA-256"
SECRET: Final = "scram"
"""The name of the directory's secret that the salts of users nobody has are made from."""

SALT_SIZE: Final = 16
ITERATIONS: Final = 4096

#: 7: a binding to the channel, an authorization identity; what remains is the bare message.
_FIRST: Final = re.compile(
    r"(?P<header>(?P<binding>[ny]|p=[A-Za-z0-9.-]+),(?:a=(?P<identity>[^,\0]+))?,)(?P<bare>.+)", re.DOTALL
)
#: 7: name, nonce of printable characters but the comma, and extensions, none of which we know.
_BARE: Final = re.compile(r"n=(?P<name>[^,\0]+),r=(?P<nonce>[!-+\--~]+)(?:,[A-Za-z]=[^,\0]+)*")
_FINAL: Final = re.compile(
    r"(?P<unproven>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>[!-+\--~]+)(?:,[A-Za-z]=[^,\0]+)*)"
    r",p=(?P<proof>[A-Za-z0-9+/=]+)"
)
_ESCAPE: Final = re.compile(r"=(2C|3D)?")
_UNESCAPED: Final = {"=2C": ",", "=3D": "="}


class Unproven(Exception):
    """The dialogue is over; ``error`` is what RFC 5802 calls the reason on the wire (7, server-error-value)."""

    def __init__(self, reason: str, error: str) -> None:
        super().__init__(reason)
        self.error = error


class Scram:
    """The method of one virtual host. ``nonce`` draws the server's part of a dialogue's nonce."""

    def __init__(self, directory: Directory, nonce: Callable[[], str] = lambda: secrets.token_urlsafe(18)) -> None:
        self._directory = directory
        self._nonce = nonce
        self._own_secret = secrets.token_bytes(32)

    def begin(self, visitor: Visitor) -> "ScramDialogue":
        """Start a dialogue; where the visitor comes from makes no difference."""
        return ScramDialogue(self, self._nonce())

    def credential(self, name: str) -> ScramCredential:
        """Return what is kept of a user, or for a user who cannot log in what nobody can tell from that."""
        user = self._directory.user(name)
        if user is not None and user.scram_sha_256:
            return ScramCredential.parse(user.scram_sha_256)
        secret = self._directory.secret(SECRET) or self._own_secret
        salt = hmac.digest(secret, name.encode(), "sha256")[:SALT_SIZE]
        return ScramCredential(ITERATIONS, salt, secrets.token_bytes(32), secrets.token_bytes(32))

    def principal(self, name: str) -> Principal:
        """Return the principal of a user who gave proof. :raises Unproven: when the user was deleted meanwhile."""
        user = self._directory.user(name)
        if user is None:
            raise self.no_proof(name)
        return Principal(user.name, frozenset(map(str, user.tags)))

    def no_proof(self, name: str) -> "Unproven":
        """Return the refusal of a user whose proof is wrong; the log alone tells why."""
        user = self._directory.user(name)
        if user is None:
            reason = "no such user"
        elif not user.scram_sha_256:
            reason = f"only a hash is known of the password of user {name!r}: it has to be set again for {NAME}"
        else:
            reason = f"wrong password of user {name!r}"
        return Unproven(reason, "invalid-proof")


class ScramDialogue:
    """One client's way through SCRAM: its first message, our challenge, its proof, our signature."""

    def __init__(self, scram: Scram, nonce: str) -> None:
        self._scram = scram
        self._nonce = nonce
        self._name = ""
        self._take: Callable[[bytes], Answer] = self._opened

    def step(self, data: bytes, answer: Callable[[Answer], None]) -> None:
        """Answer at once: a step takes a few digests."""
        try:
            given = self._take(data)
        except Unproven as refusal:
            given = Failure(str(refusal), f"e={refusal.error}".encode(), self._name)
        answer(given)

    # The messages in their order; each says which comes next

    def _opened(self, data: bytes) -> Answer:
        """Ask who is silent to speak first, as in SCRAM the client does (RFC 4422, 3)."""
        if data:
            return self._first(data)
        self._take = self._first
        return Challenge(b"")

    def _first(self, data: bytes) -> Answer:
        first = FirstMessage.parse(data)
        self._name = first.name
        challenged = Challenged(first, first.nonce + self._nonce, self._scram.credential(first.name))
        self._take = partial(self._final, challenged)
        return Challenge(challenged.challenge.encode())

    def _final(self, challenged: "Challenged", data: bytes) -> Answer:
        signature = challenged.signature(data)
        if signature is None:
            raise self._scram.no_proof(challenged.first.name)
        return Success(self._scram.principal(challenged.first.name), b"v=" + b64encode(signature))


@dataclass(frozen=True, slots=True)
class FirstMessage:
    """What the client says first. ``header`` is what comes before ``bare`` and is repeated with the proof."""

    header: str
    bare: str
    name: str
    nonce: str

    @classmethod
    def parse(cls, data: bytes) -> "FirstMessage":
        """Read the message. :raises Unproven: when it is none, or asks for what we do not have."""
        first = _parsed(_FIRST, data)
        if first["binding"].startswith("p="):
            raise Unproven("the client insists on channel binding", "channel-binding-not-supported")
        bare = _parsed(_BARE, first["bare"].encode())
        name = _unescaped(bare["name"])
        if first["identity"] is not None and _unescaped(first["identity"]) != name:
            raise Unproven("the client wants to act for another user", "other-error")
        return cls(first["header"], first["bare"], name, bare["nonce"])


@dataclass(frozen=True, slots=True)
class Challenged:
    """A client whose proof we wait for: what it said, the nonce of both sides, and what is kept of the user."""

    first: FirstMessage
    nonce: str
    credential: ScramCredential

    @property
    def challenge(self) -> str:
        """What we say to the first message."""
        salt = b64encode(self.credential.salt).decode("ascii")
        return f"r={self.nonce},s={salt},i={self.credential.iterations}"

    def signature(self, data: bytes) -> bytes | None:
        """Return ours for the client's final message, or ``None`` for a wrong proof.

        :raises Unproven: when the message is none, or belongs to another dialogue.
        """
        final = _parsed(_FINAL, data)
        if _decoded(final["binding"]) != self.first.header.encode():
            raise Unproven("the channel binding is not what the first message said", "channel-bindings-dont-match")
        if final["nonce"] != self.nonce:
            raise Unproven("the nonce is not the dialogue's", "other-error")
        said = f"{self.first.bare},{self.challenge},{final['unproven']}".encode()
        return _mac(self.credential.server_key, said) if self._proves(_decoded(final["proof"]), said) else None

    def _proves(self, proof: bytes, said: bytes) -> bool:
        """Whether the proof is the client's key, hidden under the signature of all that was said (3)."""
        signature = _mac(self.credential.stored_key, said)
        if len(proof) != len(signature):
            return False
        key = bytes(ours ^ theirs for ours, theirs in zip(signature, proof, strict=True))
        return hmac.compare_digest(hashlib.sha256(key).digest(), self.credential.stored_key)


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _parsed(form: re.Pattern[str], data: bytes) -> re.Match[str]:
    try:
        found = form.fullmatch(data.decode())
    except UnicodeDecodeError:
        raise Unproven("a message is not UTF-8", "invalid-encoding") from None
    if found is None:
        raise Unproven("a message is not of its form", "other-error")
    return found


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except NotBase64:
        raise Unproven("a value is not base64", "invalid-encoding") from None


def _unescaped(name: str) -> str:
    """Return a name with its commas and equals signs. It is looked up as it is: preparing it is the client's part."""
    if any(escape[0] not in _UNESCAPED for escape in _ESCAPE.finditer(name)):
        raise Unproven("'=' in a user name is neither =2C nor =3D", "invalid-username-encoding")
    return _ESCAPE.sub(lambda escape: _UNESCAPED[escape[0]], name)


@hookimpl
def gateway_authentication_methods(directory: Directory) -> Mapping[str, AuthenticationMethod]:
    """Offer the method."""
    return {NAME: Scram(directory)}
