"""The versions of STOMP, and how each writes what a header line cannot hold as it is.

1.0 has no escapes. 1.1 has them for the colon, the newline and the backslash, 1.2 for the carriage return as well
(1.2, "Value Encoding"). CONNECT and CONNECTED are never escaped: they are read before a version is agreed on.
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Final

from gateway_stomp.errors import StompError

_ESCAPE: Final = re.compile(r"\\(.?)", re.DOTALL)

_UNESCAPED_11: Final = {"\\": "\\", "c": ":", "n": "\n"}
_UNESCAPED_12: Final = {**_UNESCAPED_11, "r": "\r"}

#: 1.0 cannot write a newline at all; it is made visible, so that no header forges another.
_ESCAPED_10: Final = str.maketrans({"\n": "\\n"})
_ESCAPED_11: Final = str.maketrans({"\\": "\\\\", ":": "\\c", "\n": "\\n"})
_ESCAPED_12: Final = str.maketrans({"\\": "\\\\", ":": "\\c", "\n": "\\n", "\r": "\\r"})


class Version(Enum):
    """A version of STOMP, by the name clients ask for it."""

    V10 = "1.0"
    V11 = "1.1"
    V12 = "1.2"

    @property
    def protocol(self) -> str:
        """What listings call it, as RabbitMQ's do."""
        return f"STOMP {self.value}"

    def escape(self, text: str) -> str:
        """Return a header's name or value as this version writes it."""
        if text.isalnum():  # nothing to escape, which is known in a fifth of the time
            return text
        return text.translate(_ESCAPED[self])

    def unescape(self, text: str) -> str:
        """Return what a written name or value stands for. :raises StompError: for an escape nobody defined."""
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
"""The versions as ``accept-version`` and ``version`` list them."""

_ESCAPED: Final[Mapping[Version, Mapping[int, str]]] = {
    Version.V10: _ESCAPED_10,
    Version.V11: _ESCAPED_11,
    Version.V12: _ESCAPED_12,
}
_UNESCAPED: Final[Mapping[Version, Mapping[str, str]]] = {Version.V11: _UNESCAPED_11, Version.V12: _UNESCAPED_12}


def highest_common(accepted: str | None) -> Version:
    """Return the highest version both sides speak; a client that names none speaks 1.0 (1.2, "Protocol Negotiation").

    :raises StompError: when there is none.
    """
    if accepted is None:
        return Version.V10
    named = {name.strip() for name in accepted.split(",")}
    common = [version for version in Version if version.value in named]
    if not common:
        raise StompError("Version mismatch", f"Supported versions are {SUPPORTED}\n")
    return common[-1]
