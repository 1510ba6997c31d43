"""Channel 0 of a connection: the methods of the connection class, by state (2.2.4)."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from pamqp import commands
from pamqp.base import Frame

from gateway_amqp.content import METHOD
from gateway_amqp.errors import channel_error, octets, unexpected
from gateway_amqp.handshake import Handshake, Visitor
from gateway_amqp.methods import decode_method, index_of
from gateway_amqp.state import State
from gateway_amqp.tuning import ACCEPTED_HEADERS, PROTOCOL_HEADER

_CLOSE: Final = b"\x00\x0a\x00\x32"
_CLOSE_OK: Final = b"\x00\x0a\x00\x33"


def greet(connection: Visitor, header: bytes) -> bool:
    """Answer the protocol header; return whether the connection continues."""
    if header not in ACCEPTED_HEADERS:
        connection.outbox.write(PROTOCOL_HEADER)  # 2.2.4: a wrong header is answered with ours
        connection.end(f"bad protocol header {header!r}")
        return False
    connection.state = State.STARTING
    connection.outbox.write(connection.settings.greeting)
    return True


def perform(connection: Visitor, kind: int, payload: bytes) -> None:
    """Perform a method on channel 0. :raises FrameError: when it is not one, or not allowed in this state."""
    if kind != METHOD:
        raise unexpected(f"type {kind}, all octets = {octets(payload)}")
    method = decode_method(payload)
    row = _METHODS.get((connection.state, type(method)))
    if row is None:
        state = "running" if connection.state is State.OPEN else connection.state.name.lower()
        raise channel_error(f"unexpected method in connection state {state}", *index_of(payload))
    row(connection, method)


def perform_while_closing(connection: Visitor, kind: int, number: int, payload: bytes) -> None:
    """Handle a frame after close was sent: only close-ok and the peer's own close count (1.4.2.7)."""
    if number == 0 and kind == METHOD and payload[:4] in (_CLOSE, _CLOSE_OK):
        if payload[:4] == _CLOSE:
            connection.send_method(commands.Connection.CloseOk())
        connection.end("closed by the broker")


def _update_secret(connection: Visitor, method: commands.Connection.UpdateSecret) -> None:
    Handshake(connection).update_secret(method)


def _close(connection: Visitor, method: commands.Connection.Close) -> None:
    connection.send_method(commands.Connection.CloseOk())
    connection.end(f"closed by the client: {method.reply_code} {method.reply_text}".rstrip())


Row: TypeAlias = Callable[[Visitor, Any], None]  # each row takes its own method class

#: Handlers of methods, by state. A missing pair is an error.
_METHODS: Final[Mapping[tuple[State, type[Frame]], Row]] = {
    (State.STARTING, commands.Connection.StartOk): lambda connection, method: Handshake(connection).start_ok(method),
    (State.TUNING, commands.Connection.TuneOk): lambda connection, method: Handshake(connection).tune_ok(method),
    (State.OPENING, commands.Connection.Open): lambda connection, method: Handshake(connection).open(method),
    (State.OPEN, commands.Connection.UpdateSecret): _update_secret,
    (State.STARTING, commands.Connection.Close): _close,
    (State.TUNING, commands.Connection.Close): _close,
    (State.OPENING, commands.Connection.Close): _close,
    (State.OPEN, commands.Connection.Close): _close,
}
