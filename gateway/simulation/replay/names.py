"""Names that the broker chose: a client's bytes have those of the recording, a replay has others of the same length."""

import re

from gateway.recording.masking import websocket
from gateway.recording.masking.protocols import plain_name
from gateway.recording.outlines.outline import CHOSEN
from gateway.recording.parsing import ByteFilter, StreamParser


class ChosenNames:
    """Maps the random part of each recorded name to that of the replay."""

    def __init__(self) -> None:
        self._replayed: dict[bytes, bytes] = {}

    def learn(self, recorded: str, replayed: str) -> None:
        """Add a pair."""
        if len(recorded) == len(replayed):
            self._replayed[recorded.encode()] = replayed.encode()

    def feed(self, data: bytes) -> bytes:
        """Return a client's bytes with the names of the replay."""
        return CHOSEN.sub(self._substitute, data) if self._replayed else data

    def filter_of(self, listener: str) -> ByteFilter:
        """Return the filter for the bytes of a client of a listener: those of WebSockets are in masked frames."""
        if plain_name(listener).startswith("web_"):
            return StreamParser(websocket.client_grammar(self))
        return self

    def _substitute(self, match: "re.Match[bytes]") -> bytes:
        prefix = match[0][: -len(match[1])]
        return prefix + self._replayed.get(match[1], match[1])
