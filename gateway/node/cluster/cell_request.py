"""A request of the HTTP API to the leader of another cell, over the port between nodes."""

from typing import Any, Final

import h11
from twisted.protocols.tls import TLSMemoryBIOFactory

from gateway.kernel.clock import Clock, Timer
from gateway.management.cells.cell_answer import CellAnswer, CellQuestion
from gateway.net.forwarding.introduction import encode_introduction
from gateway.net.forwarding.link import LeaderSide
from gateway.net.forwarding.passing import LeaderConnector
from gateway.net.forwarding.routing import Leader
from gateway.net.introduced import IntroducedClient, IntroducedUser
from gateway.net.proxy_header import encode

#: Time limit for a connection, in seconds.
_CONNECT_S: Final = 3.0

#: Time limit for the next piece of an answer, in seconds.
_SILENT_S: Final = 60.0

#: The headers of a client that the other leader gets.
_PASSED: Final = frozenset({"content-type", "user-agent", "x-reason", "accept"})


class CellRequest:
    """Asks a leader one question, on a connection of its own, with TLS: the question may have passwords."""

    def __init__(
        self,
        leader: Leader,
        secret: str,
        node: str,
        tls: Any,  # Any: Twisted's interfaces are not types
        reactor: Any,
        clock: Clock,
        question: CellQuestion,
        answer: CellAnswer,
    ) -> None:
        self._question = question
        self._answer: CellAnswer | None = answer
        self._clock = clock
        self._http = h11.Connection(h11.CLIENT)
        self._silence: Timer | None = None
        user = question.user
        introduced = None if question.authorization else IntroducedUser(user.name, tuple(user.tags), user.accepted_by)
        client = IntroducedClient(user=introduced)
        host = question.peer_host or "127.0.0.1"
        any_address = "::1" if ":" in host else "127.0.0.1"
        line = encode_introduction(secret, question.listener, node, client=client, cell=leader.cell)
        header = encode((host, 0), (any_address, 0))
        self._side = LeaderSide(clock, self._count, line + header, self._answered, leader.fingerprint)
        connector: Any = LeaderConnector(self._side)
        if leader.fingerprint:
            connector = TLSMemoryBIOFactory(tls, True, connector, reactor)
        reactor.connectTCP(*leader.address, connector, _CONNECT_S)

    def pause(self) -> None:
        """Take no more pieces for now."""
        self._line.pauseProducing()

    def resume(self) -> None:
        """Take more pieces."""
        self._line.resumeProducing()

    def cancel(self) -> None:
        """Take nothing more."""
        self._answer = None
        self._end()

    @property
    def _line(self) -> Any:  # Any: as above
        return self._side.transport

    def _count(self, size: int) -> None:
        """Do nothing: only what clients send and get is counted."""

    def _answered(self, is_taken: bool) -> None:
        if not is_taken:
            self._fail("it cannot be reached")
            return
        if self._answer is None:
            self._end()
            return
        self._side.tap, self._side.leaving = self._receive, self._lost
        question = self._question
        headers = [("Host", "localhost"), ("Connection", "close"), ("Content-Length", str(len(question.content)))]
        headers += [(name, value) for name, value in question.headers if name.lower() in _PASSED]
        if question.authorization:
            headers.append(("Authorization", question.authorization))
        head = h11.Request(method=question.method, target=question.target, headers=headers)
        data = self._http.send(head) or b""
        data += self._http.send(h11.Data(data=question.content)) or b""
        data += self._http.send(h11.EndOfMessage()) or b""
        self._listen_on()
        self._line.write(data)

    def _listen_on(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
        self._silence = self._clock.call_later(_SILENT_S, lambda: self._fail("it says nothing more"))

    def _receive(self, data: bytes) -> None:
        self._listen_on()
        self._http.receive_data(data)
        self._take_events()

    def _take_events(self) -> None:
        try:
            while self._answer is not None:
                event = self._http.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                    return
                self._take(event)
        except h11.RemoteProtocolError as error:
            self._fail(str(error))

    def _take(self, event: object) -> None:
        answer = self._answer
        assert answer is not None
        if isinstance(event, h11.Response):
            answer.begun(event.status_code, list(event.headers))
        elif isinstance(event, h11.Data):
            answer.piece(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage):
            self._answer = None
            answer.ended()
            self._end()

    def _lost(self) -> bool:
        """Note the end of the connection; the answer may end with it."""
        if self._answer is not None:
            self._http.receive_data(b"")
            self._take_events()
        self._fail("the connection to it was lost")
        return True

    def _fail(self, reason: str) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.failed(reason)
        self._end()

    def _end(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
        self._side.give_up()
