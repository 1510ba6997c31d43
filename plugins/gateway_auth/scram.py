"""auth-scram: SCRAM-SHA-256 (RFC 5802, RFC 7677), login by proof of a password that is not sent.

Only users whose password was set in clear text on this broker can use it; the keys cannot be derived from an imported
hash. For all others the refusal is the same as for a wrong password, and takes the same time.
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
from gateway_auth.internal import internal_principal

NAME: Final = "SCRAM-SHA-256"
SECRET: Final = "scram"
"""The name of the directory's secret from which the salts of unknown users are derived."""

SALT_SIZE: Final = 16
ITERATIONS: Final = 4096

#: RFC 5802, 7: a channel binding flag, an authorization identity, and the bare message.
_FIRST: Final = re.compile(
    r"(?P<header>(?P<binding>[ny]|p=[A-Za-z0-9.-]+),(?:a=(?P<identity>[^,\0]+))?,)(?P<bare>.+)", re.DOTALL
)
#: RFC 5802, 7: name, nonce of printable characters except the comma, and extensions, none of which is supported.
_BARE: Final = re.compile(r"n=(?P<name>[^,\0]+),r=(?P<nonce>[!-+\--~]+)(?:,[A-Za-z]=[^,\0]+)*")
_FINAL: Final = re.compile(
    r"(?P<unproven>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>[!-+\--~]+)(?:,[A-Za-z]=[^,\0]+)*)"
    r",p=(?P<proof>[A-Za-z0-9+/=]+)"
)
_ESCAPE: Final = re.compile(r"=(2C|3D)?")
_UNESCAPED: Final = {"=2C": ",", "=3D": "="}


class Unproven(Exception):
    """The dialogue has failed; ``error`` is the server-error-value of RFC 5802, 7."""

    def __init__(self, reason: str, error: str) -> None:
        super().__init__(reason)
        self.error = error


class Scram:
    """The authentication method of one virtual host. ``nonce`` generates the server's part of the nonce."""

    def __init__(self, directory: Directory, nonce: Callable[[], str] = lambda: secrets.token_urlsafe(18)) -> None:
        self._directory = directory
        self._nonce = nonce
        self._own_secret = secrets.token_bytes(32)

    def begin(self, visitor: Visitor) -> "ScramDialogue":
        """Start a dialogue; ``visitor`` is not used."""
        return ScramDialogue(self, self._nonce())

    def credential(self, name: str) -> ScramCredential:
        """Return a user's credential, or for a user without one a random one that clients cannot tell apart."""
        user = self._directory.user(name)
        if user is not None and user.scram_sha_256:
            return ScramCredential.parse(user.scram_sha_256)
        secret = self._directory.secret(SECRET) or self._own_secret
        salt = hmac.digest(secret, name.encode(), "sha256")[:SALT_SIZE]
        return ScramCredential(ITERATIONS, salt, secrets.token_bytes(32), secrets.token_bytes(32))

    def principal(self, name: str) -> Principal:
        """Return the principal of an authenticated user. :raises Unproven: if the user was deleted meanwhile."""
        user = self._directory.user(name)
        if user is None:
            raise self.no_proof(name)
        return internal_principal(user)

    def no_proof(self, name: str) -> "Unproven":
        """Return the refusal for a wrong proof; only the log contains the reason."""
        user = self._directory.user(name)
        if user is None:
            reason = "no such user"
        elif not user.scram_sha_256:
            reason = f"user {name!r} has only a password hash; set the password again to use {NAME}"
        else:
            reason = f"wrong password of user {name!r}"
        return Unproven(reason, "invalid-proof")


class ScramDialogue:
    """One SCRAM dialogue: client's first message, challenge, client's proof, server's signature."""

    def __init__(self, scram: Scram, nonce: str) -> None:
        self._scram = scram
        self._nonce = nonce
        self._name = ""
        self._take: Callable[[bytes], Answer] = self._opened

    def step(self, data: bytes, answer: Callable[[Answer], None]) -> None:
        """Handle a message and answer at once: a step costs a few digests."""
        try:
            given = self._take(data)
        except Unproven as refusal:
            given = Failure(str(refusal), f"e={refusal.error}".encode(), self._name)
        answer(given)

    # The messages in order; each handler sets the next one

    def _opened(self, data: bytes) -> Answer:
        """Answer empty initial data with an empty challenge, because the client sends first in SCRAM (RFC 4422, 3)."""
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
    """The client's first message. ``header`` precedes ``bare`` and is repeated with the proof."""

    header: str
    bare: str
    name: str
    nonce: str

    @classmethod
    def parse(cls, data: bytes) -> "FirstMessage":
        """Parse the message. :raises Unproven: if it is malformed or requests an unsupported feature."""
        first = _parsed(_FIRST, data)
        if first["binding"].startswith("p="):
            raise Unproven(
                "the client requires channel binding, which is not supported", "channel-binding-not-supported"
            )
        bare = _parsed(_BARE, first["bare"].encode())
        name = _unescaped(bare["name"])
        if first["identity"] is not None and _unescaped(first["identity"]) != name:
            raise Unproven("the authorization identity differs from the user name", "other-error")
        return cls(first["header"], first["bare"], name, bare["nonce"])


@dataclass(frozen=True, slots=True)
class Challenged:
    """The state after the challenge: the client's first message, the full nonce, and the user's credential."""

    first: FirstMessage
    nonce: str
    credential: ScramCredential

    @property
    def challenge(self) -> str:
        """The server's first message."""
        salt = b64encode(self.credential.salt).decode("ascii")
        return f"r={self.nonce},s={salt},i={self.credential.iterations}"

    def signature(self, data: bytes) -> bytes | None:
        """Return the server signature for the client's final message; ``None`` for a wrong proof.

        :raises Unproven: if the message is malformed or belongs to another dialogue.
        """
        final = _parsed(_FINAL, data)
        if _decoded(final["binding"]) != self.first.header.encode():
            raise Unproven("the channel binding differs from the first message", "channel-bindings-dont-match")
        if final["nonce"] != self.nonce:
            raise Unproven("the nonce differs from the challenge", "other-error")
        messages = f"{self.first.bare},{self.challenge},{final['unproven']}".encode()
        return _mac(self.credential.server_key, messages) if self._proves(_decoded(final["proof"]), messages) else None

    def _proves(self, proof: bytes, messages: bytes) -> bool:
        """Whether the proof is the client key XOR the signature of all messages so far (RFC 5802, 3)."""
        signature = _mac(self.credential.stored_key, messages)
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
        raise Unproven("malformed message", "other-error")
    return found


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except NotBase64:
        raise Unproven("a value is not base64", "invalid-encoding") from None


def _unescaped(name: str) -> str:
    """Return a name with its commas and equals signs. It is not prepared: SASLprep is the client's task."""
    if any(escape[0] not in _UNESCAPED for escape in _ESCAPE.finditer(name)):
        raise Unproven("'=' in a user name is neither =2C nor =3D", "invalid-username-encoding")
    return _ESCAPE.sub(lambda escape: _UNESCAPED[escape[0]], name)


@hookimpl
def gateway_authentication_methods(directory: Directory) -> Mapping[str, AuthenticationMethod]:
    """Offer the authentication method."""
    return {NAME: Scram(directory)}
