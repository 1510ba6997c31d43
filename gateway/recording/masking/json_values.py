"""JSON in bodies of HTTP requests: its structure is shown, and the values of some keys. The length stays the same."""

import json
import re
from typing import Final

from gateway.recording.parsing import HIDDEN

#: Longer bodies are hidden as a whole.
LONGEST_JSON: Final = 64 * 1024

#: Keys whose values are shown, besides those that begin with ``x-``: no other part of a body is needed to make an
#: object again. Keys of plugins, users and parameters are not among them.
_SHOWN: Final = frozenset(
    b"ackmode apply-to arguments auto_delete configure count definition delivery_mode destination destination_type "
    b"durable encoding exchange exclusive expires ha-mode internal max-length message-ttl name node overflow pattern "
    b"payload_encoding priority queue read requeue routing_key source truncate type vhost write".split()
)

#: A text, a number, or a character of the structure.
_TOKEN: Final = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?|-?\d[\d.eE+-]*', re.S)


def masked_json(body: bytes) -> bytes:
    """Hide the values of keys that may hold a secret; a text that is not JSON is hidden as a whole."""
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return HIDDEN * len(body)
    key = b""

    def masked(match: "re.Match[bytes]") -> bytes:
        nonlocal key
        if match[2] is not None:
            key = match[1]
            return match[0]
        if key in _SHOWN or key.startswith(b"x-"):
            return match[0]
        if match[1] is None:
            return b"1" * len(match[0])
        return b'"' + HIDDEN * len(match[1]) + b'"'

    return _TOKEN.sub(masked, body)
