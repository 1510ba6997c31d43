"""The outline of what the broker sent at one connection: its frames as lines, and the names that the broker chose."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from gateway.recording.masking.protocols import plain_name
from gateway.recording.outlines import amqp, mqtt, stomp, websocket
from gateway.recording.parsing import Grammar, StreamParser

_GRAMMARS: Final[Mapping[str, Callable[[Callable[[str], None]], Grammar]]] = {
    "amqp": amqp.outline_grammar,
    "mqtt": mqtt.outline_grammar,
    "stomp": stomp.outline_grammar,
}

#: The beginning of an HTTP answer.
_STATUS: Final = re.compile(rb"HTTP/1\.1 (\d{3}) ")

#: Names that end in a random part of 22 characters: of queues, consumers, sessions, clients, and addresses of replies.
CHOSEN: Final = re.compile(
    rb"(?:amq\.gen-|amq\.ctag-|amq\.rabbitmq\.reply-to\.|session-|auto-|stomp-subscription-)([A-Za-z0-9_-]{22})"
)

#: The end of a piece in which the beginning of a name may stand, in bytes.
_LONGEST_NAME: Final = 48

#: Names that are known of one connection; further ones are not looked at.
MOST_NAMES: Final = 10_000


class AnswerOutline:
    """Collects the lines and the chosen names until ``take`` returns them."""

    def __init__(self, listener: str) -> None:
        name = plain_name(listener)
        self._lines: list[str] = []
        self._names: list[str] = []
        self._known: set[bytes] = set()
        self._tail = b""
        protocol = name.removeprefix("web_")
        self._has_status = protocol not in _GRAMMARS or protocol != name
        grammar = _GRAMMARS[protocol](self._lines.append) if protocol in _GRAMMARS else None
        if grammar is not None and protocol != name:
            grammar = websocket.outline_grammar(grammar)
        self._parser = None if grammar is None else StreamParser(grammar)

    def feed(self, data: bytes) -> None:
        """Add bytes that the broker sent, as one write."""
        seen = self._tail + data
        if self._has_status:
            for status in _STATUS.finditer(seen):
                if status.end() > len(self._tail) and self._has_status:
                    self._lines.append(f"HTTP {status[1].decode()}")
                    self._has_status = self._parser is None  # a WebSocket gets one answer
        if self._parser is not None:
            self._parser.feed(data)
            end = self._find_names(seen)
            self._tail = seen[max(end, len(seen) - _LONGEST_NAME) :]
        else:
            self._tail = seen[-_LONGEST_NAME:]

    def take(self) -> tuple[list[str], list[str]]:
        """Return the lines, and the names that were new, since the last call."""
        lines, names = self._lines.copy(), self._names
        self._lines.clear()
        self._names = []
        return lines, names

    def _find_names(self, seen: bytes) -> int:
        """Find chosen names; return the end of the last one."""
        end = 0
        for match in CHOSEN.finditer(seen):
            end = match.end()
            if match[1] not in self._known and len(self._known) < MOST_NAMES:
                self._known.add(match[1])
                self._names.append(match[1].decode())
        return end
