"""A request of the HTTP API to the leader of another cell, over the port between nodes."""

from typing import Any, Final

from twisted.protocols.tls import TLSMemoryBIOFactory

from gateway.kernel.clock import Clock
from gateway.management.cells.cell_answer import CellAnswer, CellQuestion
from gateway.management.pipeline.vouched_range import OFFERED_COPIES
from gateway.net.forwarding.introduction import encode_introduction
from gateway.net.forwarding.link import LeaderSide
from gateway.net.forwarding.passing import LeaderConnector
from gateway.net.forwarding.routing import Leader
from gateway.net.introduced import IntroducedClient, IntroducedUser
from gateway.net.proxy_header import encode
from gateway.node.cluster.http_line import HttpLine

#: Time limit for a connection, in seconds.
_CONNECT_S: Final = 3.0

#: The headers of a client that the other leader gets.
_PASSED: Final = frozenset({"content-type", "user-agent", "x-reason", "accept", OFFERED_COPIES})


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
        self._line: HttpLine | None = None
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
        if self._line is not None:
            self._line.pause()

    def resume(self) -> None:
        """Take more pieces."""
        if self._line is not None:
            self._line.resume()

    def cancel(self) -> None:
        """Take nothing more."""
        self._answer = None
        if self._line is not None:
            self._line.close()
        else:
            self._side.give_up()

    def _count(self, size: int) -> None:
        """Do nothing: only what clients send and get is counted."""

    def _answered(self, is_taken: bool) -> None:
        answer = self._answer
        if answer is None:
            self._side.give_up()
            return
        if not is_taken:
            self._answer = None
            answer.failed("it cannot be reached")
            self._side.give_up()
            return
        question = self._question
        headers = [("Host", "localhost"), ("Connection", "close")]
        headers += [(name, value) for name, value in question.headers if name.lower() in _PASSED]
        if question.authorization:
            headers.append(("Authorization", question.authorization))
        self._line = HttpLine(self._side, self._clock)
        self._line.ask(question.method, question.target, headers, question.content, answer)
