"""The versions of STOMP, and their escapes in header lines.

1.0 has no escapes. 1.1 escapes the colon, the newline and the backslash, 1.2 the carriage return as well (1.2, "Value
Encoding"). CONNECT and CONNECTED are never escaped, because they precede the negotiation.
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Final

from gateway_stomp.errors import StompError

_ESCAPE: Final = re.compile(r"\\(.?)", re.DOTALL)

_UNESCAPED_11: Final = {"\\": "\\", "c": ":", "n": "\n"}
_UNESCAPED_12: Final = {**_UNESCAPED_11, "r": "\r"}

#: 1.0 cannot encode a newline; it is replaced by visible characters, so that a value cannot forge another header.
_ESCAPED_10: Final = str.maketrans({"\n": "\\n"})
_ESCAPED_11: Final = str.maketrans({"\\": "\\\\", ":": "\\c", "\n": "\\n"})
_ESCAPED_12: Final = str.maketrans({"\\": "\\\\", ":": "\\c", "\n": "\\n", "\r": "\\r"})


class Version(Enum):
    """A version of STOMP, by its name in ``accept-version``."""

    V10 = "1.0"
    V11 = "1.1"
    V12 = "1.2"

    @property
    def protocol(self) -> str:
        """The name of the protocol in listings, as in RabbitMQ."""
        return f"STOMP {self.value}"

    def escape(self, text: str) -> str:
        """Escape a header's name or value."""
        if text.isalnum():  # no escapes; this check takes a fifth of the time
            return text
        return text.translate(_ESCAPED[self])

    def unescape(self, text: str) -> str:
        """Unescape a header's name or value. :raises StompError: for an undefined escape."""
        if self is Version.V10 or "\\" not in text:
            return text
        unescaped = _UNESCAPED[self]

        def meant(escape: re.Match[str]) -> str:
            try:
                return unescaped[escape[1]]
            except KeyError:
                detail = f"'\\{escape[1]}' is not an escape of STOMP {self.value}"
                raise StompError("Invalid header", detail) from None

        return _ESCAPE.sub(meant, text)


SUPPORTED: Final = ",".join(version.value for version in Version)
"""The versions in ``accept-version`` and ``version``."""

_ESCAPED: Final[Mapping[Version, Mapping[int, str]]] = {
    Version.V10: _ESCAPED_10,
    Version.V11: _ESCAPED_11,
    Version.V12: _ESCAPED_12,
}
_UNESCAPED: Final[Mapping[Version, Mapping[str, str]]] = {Version.V11: _UNESCAPED_11, Version.V12: _UNESCAPED_12}


def highest_common(accepted: str | None) -> Version:
    """Return the highest common version; a client that names none uses 1.0 (1.2, "Protocol Negotiation").

    :raises StompError: when there is none.
    """
    if accepted is None:
        return Version.V10
    named = {name.strip() for name in accepted.split(",")}
    common = [version for version in Version if version.value in named]
    if not common:
        raise StompError("Version mismatch", f"Supported versions are {SUPPORTED}\n")
    return common[-1]
