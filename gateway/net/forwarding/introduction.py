"""The line by which a node introduces a connection that it forwards: a secret, the listener's name, the node's name.

A ``#`` and a number after the listener's name say which cell's leader is meant, if it is not the first one. A ``+``
says that the client had another leader before, and that this one is to go on.

A last word that begins with ``=`` says which TLS and which web page the client uses, if any: both end at its node.
A PROXY header with the client's address follows. The leader answers with one byte, then the client's bytes follow.
"""

import re
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final
from urllib.parse import quote, unquote

from gateway.kernel.errors import ProtocolViolation
from gateway.net.forwarding.routing import FIRST_CELL
from gateway.net.introduced import PLAIN, IntroducedClient, decode_introduced, encode_introduced

_VERSION: Final = b"GATEWAY-FORWARD/1"

#: The byte by which the leader says that it has taken the connection.
TAKEN: Final = b"+"

#: The longest line that is read, in bytes.
LONGEST: Final = 32 * 1024

_LINE: Final = re.compile(
    rb"GATEWAY-FORWARD/1 ([0-9a-f]{16,128}) ([a-z_]{1,40})(?:#([1-9][0-9]{0,8}))?(\+?)"
    rb"(?: ([!-<>-~][!-~]{0,799}))?(?: =([!-~]+))?\r\n"
)


@dataclass(frozen=True, slots=True)
class Introduction:
    """A connection of a listener that a node forwards. ``size`` is the length of the line in bytes.

    ``is_resumed``: another leader served the client before. ``client`` is what its node knows of it. ``cell`` is the
    one whose leader is meant.
    """

    listener: str
    node: str
    size: int
    is_resumed: bool = False
    client: IntroducedClient = PLAIN
    cell: int = FIRST_CELL


def encode_introduction(
    secret: str,
    listener: str,
    node: str = "",
    *,
    is_resumed: bool = False,
    client: IntroducedClient = PLAIN,
    cell: int = FIRST_CELL,
) -> bytes:
    """Return the line for a listener of a node."""
    number = b"" if cell == FIRST_CELL else b"#%d" % cell
    words = [_VERSION, secret.encode("ascii"), listener.encode("ascii") + number + b"+" * is_resumed]
    if node:
        words.append(quote(node, safe="@").encode("ascii"))
    if client != PLAIN:
        words.append(b"=" + encode_introduced(client))
    return b" ".join(words) + b"\r\n"


def parse_introduction(data: bytes, secret: str) -> Introduction | None:
    """Return the introduction at the start of some bytes; ``None`` while it is incomplete.

    :raises ProtocolViolation: if it is no such line, or has another secret.
    """
    if b"\n" not in data[:LONGEST]:
        if len(data) >= LONGEST or not (_VERSION.startswith(data[: len(_VERSION)])):
            raise ProtocolViolation("no introduction of a node at the start of the connection")
        return None
    found = _LINE.match(data)
    if found is None:
        raise ProtocolViolation("a malformed introduction of a node")
    if not compare_digest(found[1], secret.encode("ascii")):
        raise ProtocolViolation("a node with the secret of another cluster")
    node = unquote((found[5] or b"").decode("ascii"), errors="replace")
    client = PLAIN if found[6] is None else decode_introduced(found[6])
    cell = FIRST_CELL if found[3] is None else int(found[3])
    return Introduction(found[2].decode("ascii"), node, found.end(), bool(found[4]), client, cell)
