"""The beginning of a connection with another leader: the login, and what had ended with the former leader.

Queues and bindings are declared on a channel of its own, before the client's channels are opened, because a refusal
closes the channel. ``failures`` has the reasons by queue: its consumers cannot go on.
"""

from collections.abc import Generator, Iterable
from typing import Final, TypeAlias

from pamqp import commands
from pamqp.base import Frame

from gateway.kernel.errors import ProtocolViolation
from gateway.kernel.names import REPLY_TO
from gateway_amqp.content import METHOD
from gateway_amqp.methods import decode_method, encode_method
from gateway_amqp.resuming.login import RelayedLogin
from gateway_amqp.resuming.transient_topology import queue_of

#: The channel for declarations. No channel of the client is open meanwhile.
_CHANNEL: Final = 1

Steps: TypeAlias = Generator[bytes, Frame, None]


class Restoration:
    """The dialogue with the new leader: repeats the ``login`` and what was ``declared``, and looks for the ``queues``.

    ``is_blocked`` tells whether the leader blocks publishers.
    """

    def __init__(self, login: RelayedLogin, declared: Iterable[Frame], queues: Iterable[str]) -> None:
        self.failures: dict[str, str] = {}
        self.is_blocked = False
        self.is_over = False
        self.has_logged_in = False
        self._login = login
        self._requests = [*declared, *map(_passive, queues)]
        self._steps = self._restoring()
        self._outgoing = [next(self._steps)]

    def take(self) -> bytes:
        """Return what the leader is sent next."""
        outgoing, self._outgoing = self._outgoing, []
        return b"".join(outgoing)

    def frame(self, kind: int, payload: bytes) -> None:
        """Handle a frame of the leader. :raises ProtocolViolation: if it is not the one that is due."""
        if kind != METHOD:
            return  # a heartbeat
        method = decode_method(payload)
        if isinstance(method, commands.Connection.Blocked | commands.Connection.Unblocked):
            self.is_blocked = isinstance(method, commands.Connection.Blocked)
            return
        try:
            self._outgoing.append(self._steps.send(method))
        except StopIteration:
            self.is_over = True

    def _restoring(self) -> Steps:
        login = self._login
        _require((yield login.header), commands.Connection.Start)
        _require((yield login.start_ok), commands.Connection.Tune)
        _require((yield login.limits_and_vhost), commands.Connection.OpenOk)
        self.has_logged_in = True
        if not self._requests:
            return
        _require((yield _encode(commands.Channel.Open())), commands.Channel.OpenOk)
        for request in self._requests:
            answer = yield _encode(request)
            if isinstance(answer, commands.Channel.Close):
                self.failures.setdefault(queue_of(request), answer.reply_text)
                again = _encode(commands.Channel.CloseOk()) + _encode(commands.Channel.Open())
                _require((yield again), commands.Channel.OpenOk)
        _require((yield _encode(commands.Channel.Close(200, "", 0, 0))), commands.Channel.CloseOk)


def _passive(queue: str) -> commands.Queue.Declare:
    declare = commands.Queue.Declare(passive=True)
    declare.queue = queue  # set afterwards: pamqp's constructor refuses names that RabbitMQ accepts
    return declare


def is_looked_for(queue: str) -> bool:
    """Whether a queue must exist: the pseudo-queue of direct reply-to always does."""
    return queue != REPLY_TO


def _encode(method: Frame) -> bytes:
    return encode_method(_CHANNEL, method)


def _require(method: Frame, expected: type[Frame]) -> None:
    if not isinstance(method, expected):
        raise ProtocolViolation(f"{method.name} of the new leader instead of {expected.name}")
