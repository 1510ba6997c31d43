"""The dialogue of a replayed connection: one line for each frame, packet or request, with its arguments."""

import re
from collections.abc import Callable
from typing import Any, Final

from pamqp import commands

from gateway.recording.masking import websocket as masked_websocket
from gateway.recording.masking.protocols import plain_name
from gateway.recording.outlines import amqp, mqtt, stomp, websocket
from gateway.recording.parsing import Grammar, StreamParser

_REQUEST: Final = re.compile(rb"([A-Z]+ \S+) HTTP/1\.[01]\r?\n")
_STATUS: Final = re.compile(rb"HTTP/1\.1 (\d{3}[^\r\n]*)")

#: The longest text of an argument.
_LONGEST: Final = 60

_COMMANDS: Final = {
    amqp.method_name((index >> 16, index & 0xFFFF)): command for index, command in commands.INDEX_MAPPING.items()
}


class ReplayDialogue:
    """Says what both sides of a connection send. ``say`` gets the direction, ``>`` to the broker, and a text."""

    def __init__(self, listener: str, say: Callable[[str, str], None]) -> None:
        self._say = say
        name = plain_name(listener)
        self._is_web = name.startswith("web_")
        self._is_http = self._is_web or name == "management"
        self._to_broker = self._parser(name, ">")
        self._to_client = self._parser(name, "<")

    def client_sent(self, data: bytes) -> None:
        """Say what a client sends."""
        if self._is_http:
            for match in _REQUEST.finditer(data):
                self._say(">", match[1].decode(errors="replace"))
        if self._to_broker is not None:
            self._to_broker.feed(data)

    def broker_sent(self, data: bytes) -> None:
        """Say what the broker sends."""
        if self._is_http and (status := _STATUS.match(data)) is not None:
            self._say("<", f"HTTP {status[1].decode(errors='replace')}")
        if self._to_client is not None:
            self._to_client.feed(data)

    def _parser(self, name: str, direction: str) -> StreamParser | None:
        def say(text: str) -> None:
            self._say(direction, text)

        grammars: dict[str, Callable[[], Grammar]] = {
            "amqp": lambda: amqp.outline_grammar(say, _arguments),
            "mqtt": lambda: mqtt.outline_grammar(say),
            "stomp": lambda: stomp.outline_grammar(say),
        }
        grammar = grammars.get(name.removeprefix("web_"))
        if grammar is None:
            return None
        if not self._is_web:
            return StreamParser(grammar())
        if direction == ">":
            return StreamParser(masked_websocket.client_grammar(StreamParser(grammar())))
        return StreamParser(websocket.outline_grammar(grammar()))


def _arguments(name: str, encoded: bytes) -> str:
    """Return the arguments of an AMQP method that are set."""
    command: Any = _COMMANDS[name]() if name in _COMMANDS else None
    if command is None:
        return ""
    try:
        command.unmarshal(encoded)
    except Exception:  # what the client sent may be anything, and pamqp raises many kinds of errors
        return "(unreadable arguments)"
    return " ".join(f"{key}={_short(value)}" for key, value in command if value not in (None, "", False, {}, b"", 0))


def _short(value: object) -> str:
    text = value if isinstance(value, str) and value.isprintable() else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
