"""The head of a frame that passes: its verb and its headers as they are on the wire."""

from gateway_stomp.versions import Version


class FrameHead:
    """The head of a frame. Headers are found by their lines, because few frames need any."""

    __slots__ = ("_lines", "verb")

    def __init__(self, data: bytes, size: int) -> None:
        self._lines = data[:size].replace(b"\r\n", b"\n").split(b"\n")
        self.verb = self._lines[0]

    def value(self, name: str, version: Version = Version.V10) -> str | None:
        """Return the first header of this name. :raises StompError: for an escape that the version does not have."""
        beginning = name.encode() + b":"
        for line in self._lines[1:]:
            if line.startswith(beginning):
                value = line[len(beginning) :].decode("utf-8", "surrogateescape")
                return value.lstrip(" ") if version is Version.V10 else version.unescape(value)
        return None


def without_headers(data: bytes, size: int, *names: str) -> bytes:
    """Return a frame without these headers."""
    dropped = tuple(name.encode() + b":" for name in names)
    verb, *lines = data[:size].split(b"\n")
    kept = [line for line in lines if not line.startswith(dropped)]
    return b"\n".join([verb, *kept]) + data[size:]


def with_header(data: bytes, name: str, value: str) -> bytes:
    """Return a frame with one more header, in front of the others."""
    verb, _, rest = data.partition(b"\n")
    return b"%b\n%b:%b\n%b" % (verb, name.encode(), value.encode(), rest)
