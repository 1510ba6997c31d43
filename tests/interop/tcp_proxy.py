"""A TCP proxy between client and server that drops answers or cuts the connection when told."""

import socket
from contextlib import suppress
from threading import Thread
from types import TracebackType
from typing import Final

CHUNK: Final = 65_536


class TcpProxy:
    """Listens on ``port`` and forwards bytes between client and server, one connection at a time.

    While ``loses_answers`` is true, the server's bytes are dropped.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        self.loses_answers = False

    def __enter__(self) -> "TcpProxy":
        Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Cut the connection at both ends."""
        ends, self._ends = self._ends, []
        for end in ends:
            with suppress(OSError):  # the peer may have closed it already
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._ends += [client, server]
                Thread(target=self._pass_on, args=(client, server, False), daemon=True).start()
                Thread(target=self._pass_on, args=(server, client, True), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):  # the line was cut
            while data := source.recv(CHUNK):
                if not (is_answer and self.loses_answers):
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)
