"""The introduction of a client whose TLS or WebSocket ends at another node of the cluster."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import asdict, dataclass
from typing import Any, Final

from gateway.access import CertificateSubject
from gateway.kernel.broker.connections import TlsInfo
from gateway.kernel.errors import ProtocolViolation


@dataclass(frozen=True, slots=True)
class IntroducedUser:
    """A user that the leader of another cell has authenticated: its name, its tags, and the plugin that accepted it."""

    name: str
    tags: tuple[str, ...] = ()
    accepted_by: str = ""


@dataclass(frozen=True, slots=True)
class IntroducedClient:
    """The TLS of a client, ``None`` without it; the names in its verified certificate; whether it uses WebSocket, and
    the web page that it comes from. ``user`` is only known of a request of the HTTP API.
    """

    tls: TlsInfo | None = None
    certificate: CertificateSubject | None = None
    is_web: bool = False
    origin: str = ""
    user: IntroducedUser | None = None


#: A client without TLS, which is no web page.
PLAIN: Final = IntroducedClient()


def introduced_of(transport: Any) -> IntroducedClient | None:  # Any: Twisted's interfaces are not types
    """Return what another node has told of the client; ``None`` if the client is connected to this one."""
    introduced: IntroducedClient | None = getattr(transport, "introduced", None)
    return introduced


def encode_introduced(client: IntroducedClient) -> bytes:
    """Return a client as one word of ASCII."""
    return urlsafe_b64encode(json.dumps(asdict(client)).encode())


def decode_introduced(word: bytes) -> IntroducedClient:
    """Return the client of a word. :raises ProtocolViolation: if there is none."""
    try:
        fields = json.loads(urlsafe_b64decode(word))
        tls, certificate, origin = fields["tls"], fields["certificate"], fields["origin"]
        user = fields.get("user")
        found = IntroducedClient(
            None if tls is None else TlsInfo(**tls),
            None if certificate is None else CertificateSubject(**certificate),
            bool(fields["is_web"]),
            origin,
            None if user is None else IntroducedUser(user["name"], tuple(user["tags"]), user["accepted_by"]),
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ProtocolViolation("a malformed introduction of a client") from None
    texts = [found.origin, *(asdict(found.tls).values() if found.tls else ())]
    texts += asdict(found.certificate).values() if found.certificate else ()
    texts += (found.user.name, *found.user.tags, found.user.accepted_by) if found.user else ()
    if not all(isinstance(text, str) for text in texts):
        raise ProtocolViolation("a malformed introduction of a client")
    return found
