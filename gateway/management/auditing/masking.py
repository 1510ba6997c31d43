"""Replacement of secrets in the states and bodies that the audit record keeps."""

import re
from typing import Final

from gateway.definitions.secrets import MASK, shown_text

#: Names of fields whose values are secrets, wherever they occur.
_SECRET_NAME: Final = re.compile(
    r"passw|passphrase|secret|token|credential|private.?key|api.?key|scram|(^|[^a-z])pass([^a-z]|$)", re.IGNORECASE
)

#: A secret in the query of a URI: ``?password=...``.
_QUERY_SECRET: Final = re.compile(r"([?&][a-z_]*(?:passw|secret|token|key)[a-z_]*=)[^&\s]*", re.IGNORECASE)

#: Nested levels that are kept; deeper ones are replaced.
_MOST_LEVELS: Final = 16


def masked(value: object, levels: int = _MOST_LEVELS) -> object:
    """Return a JSON value with secrets replaced by ``***``, in fields with the name of a secret and in URIs."""
    if isinstance(value, str):
        return _QUERY_SECRET.sub(rf"\1{MASK}", shown_text(value))
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return MASK
    if isinstance(value, list):
        return [masked(item, levels - 1) for item in value]
    return {
        name: MASK if item and _SECRET_NAME.search(name) else masked(item, levels - 1) for name, item in value.items()
    }
