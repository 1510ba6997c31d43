"""A relay on 127.0.0.1 between clients and a broker, which keeps what both send."""

import socket
from contextlib import suppress
from threading import Lock, Thread
from types import TracebackType
from typing import Final, Self

from tests.fuzz.decoders.corpus import TO_BROKER, TO_CLIENT

_CHUNK: Final = 65_536


class Relay:
    """Forwards connections to ``address``. ``conversations`` has the pieces of each, with direction, as they came."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = Lock()
        self.port: int = self._listener.getsockname()[1]
        self.conversations: list[list[tuple[str, bytes]]] = []

    def __enter__(self) -> Self:
        Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(self._address)
                pieces: list[tuple[str, bytes]] = []
                self.conversations.append(pieces)
                Thread(target=self._forward, args=(client, broker, TO_BROKER, pieces), daemon=True).start()
                Thread(target=self._forward, args=(broker, client, TO_CLIENT, pieces), daemon=True).start()

    def _forward(
        self, source: socket.socket, target: socket.socket, direction: str, pieces: list[tuple[str, bytes]]
    ) -> None:
        with suppress(OSError):  # a peer closed its connection
            while data := source.recv(_CHUNK):
                with self._lock:
                    pieces.append((direction, data))
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
