"""Requests that wait for their answers: one inbox subscription, and a number for each request."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from gateway_jetstream.codec.frames import Delivered
from gateway_jetstream.errors import NatsError, NoResponders, RequestTimedOut, TooMuch

_log: Final = Logger()

T = TypeVar("T")

Answered: TypeAlias = "Callable[[Delivered | NatsError], None]"
"""Takes the answer to a request, or the reason why there is none."""

#: The time between two looks for requests whose time is over, in seconds: an answer is late by at most this.
_SWEEP_S: Final = 0.1

#: The headers of the answer when the subject of a request has no subscribers.
_NO_RESPONDERS: Final = b"NATS/1.0 503"


class WaitingRequest:
    """A request that waits. ``answered`` is called once."""

    __slots__ = ("answered", "due_s", "server", "subject", "timeout_s")

    def __init__(self, subject: str, server: str, due_s: float, timeout_s: float, answered: Answered) -> None:
        self.subject = subject
        self.server = server
        self.due_s = due_s
        self.timeout_s = timeout_s
        self.answered = answered

    def answer(self, answer: Delivered | NatsError) -> None:
        """Hand the answer on. An error of its taker must not end the connection, which others use too."""
        try:
            self.answered(answer)
        except Exception:
            _log.failure("an answer of {server} about {subject}", server=self.server, subject=self.subject)


class Requests:
    """The open requests of a client by number. ``inbox`` is the beginning of the subjects of their answers."""

    def __init__(self, reactor: Any, inbox: str, most: int) -> None:  # Any: Twisted's interfaces are not types
        self._reactor = reactor
        self.inbox = inbox
        self._most = most
        self._next_number = 1
        self._open: dict[int, WaitingRequest] = {}
        self._sweep_call: Any = None

    def __len__(self) -> int:
        return len(self._open)

    def add(self, subject: str, server: str, timeout_s: float, answered: Answered) -> str:
        """Return the subject for the answer of a new request. :raises TooMuch: if too many wait."""
        if len(self._open) >= self._most:
            raise TooMuch(f"more than {self._most} requests wait for answers", server=server, subject=subject)
        number = self._next_number
        self._next_number += 1
        due_s = self._reactor.seconds() + timeout_s
        self._open[number] = WaitingRequest(subject, server, due_s, timeout_s, answered)
        if self._sweep_call is None:
            self._sweep_call = self._reactor.callLater(_SWEEP_S, self._sweep)
        return f"{self.inbox}{number}"

    def withdraw(self, reply: str) -> None:
        """Forget a request that was not sent: it gets no answer."""
        self._open.pop(int(reply[len(self.inbox) :]), None)

    def take(self, message: Delivered) -> None:
        """Answer a request. Late and repeated answers are dropped."""
        number = message.subject[len(self.inbox) :]
        waiting = self._open.pop(int(number), None) if number.isdecimal() and len(number) < 20 else None
        if waiting is None:
            return
        if not message.payload and message.header.startswith(_NO_RESPONDERS):
            waiting.answer(NoResponders("no subscriber answers", server=waiting.server, subject=waiting.subject))
        else:
            waiting.answer(message)

    def fail(self, error: Callable[[WaitingRequest], NatsError]) -> None:
        """Fail all open requests, each with its own error."""
        waiting, self._open = list(self._open.values()), {}
        if self._sweep_call is not None:
            self._sweep_call.cancel()
            self._sweep_call = None
        for each in waiting:
            each.answer(error(each))

    def _sweep(self) -> None:
        """Fail the requests whose time is over."""
        now_s = self._reactor.seconds()
        self._sweep_call = None
        late = [number for number, each in self._open.items() if each.due_s <= now_s]
        overdue = [self._open.pop(number) for number in late]
        if self._open:
            self._sweep_call = self._reactor.callLater(_SWEEP_S, self._sweep)
        for each in overdue:
            text = f"no answer within {each.timeout_s:g} s"
            each.answer(RequestTimedOut(text, server=each.server, subject=each.subject))


def fire(waiting: "Deferred[T]", outcome: T | NatsError) -> None:
    """Fire a Deferred with a result or an error."""
    if isinstance(outcome, NatsError):
        waiting.errback(outcome)
    else:
        waiting.callback(outcome)
