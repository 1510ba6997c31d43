"""Sessions of AMQP 0-9-1 clients, as pika and amqplib write them."""

from typing import Final

from pamqp import base, body, commands, frame, header

from tests.fuzz.mutating import Session
from tests.fuzz.sandbox import PASSWORD, USER, VHOST

_CAPABILITIES: Final = {"capabilities": {"consumer_cancel_notify": True, "basic.nack": True}, "product": "fuzz"}


def _method(method: base.Frame, channel: int = 1) -> bytes:
    return frame.marshal(method, channel)


def _published(exchange: str, key: str, content: bytes, **properties: object) -> tuple[bytes, ...]:
    return (
        _method(commands.Basic.Publish(0, exchange, key)),
        frame.marshal(header.ContentHeader(0, len(content), commands.Basic.Properties(**properties)), 1),
        frame.marshal(body.ContentBody(content), 1),
    )


_OPENING: Final = (
    b"AMQP\0\0\x09\x01",
    _method(commands.Connection.StartOk(_CAPABILITIES, "PLAIN", f"\0{USER}\0{PASSWORD}", "en_US"), 0),
    _method(commands.Connection.TuneOk(2047, 131_072, 60), 0),
    _method(commands.Connection.Open(VHOST), 0),
    _method(commands.Channel.Open()),
)
_CLOSING: Final = (
    _method(commands.Channel.Close(200, "bye", 0, 0)),
    _method(commands.Connection.Close(200, "", 0, 0), 0),
)
_TABLE: Final = {"x": 1, "y": [True, "z", {"n": 2}], "t": 1.5, "b": bytearray(b"\0\1")}

SESSIONS: Final[tuple[Session, ...]] = (
    (
        *_OPENING,
        _method(commands.Queue.Declare(0, "fuzz.q", durable=True, arguments={"x-max-length": 100})),
        _method(commands.Basic.Qos(0, 10)),
        _method(commands.Basic.Consume(0, "fuzz.q", "c")),
        *_published("", "fuzz.q", b"hello", headers=_TABLE, delivery_mode=2, priority=4, content_type="text/plain"),
        _method(commands.Basic.Ack(1, True)),
        _method(commands.Basic.Nack(2, False, True)),
        _method(commands.Basic.Cancel("c")),
        *_CLOSING,
    ),
    (
        *_OPENING,
        _method(commands.Confirm.Select()),
        _method(
            commands.Exchange.Declare(
                0, "fuzz.x", "topic", durable=True, arguments={"alternate-exchange": "amq.fanout"}
            )
        ),
        _method(commands.Queue.Declare(0, "", exclusive=True, arguments={"x-message-ttl": 60_000, "x-expires": 9000})),
        _method(commands.Queue.Bind(0, "", "fuzz.x", "a.*.#", False, {"k": "v"})),
        *_published("fuzz.x", "a.b.c", b"x" * 5000, expiration="1000", reply_to="amq.rabbitmq.reply-to"),
        _method(commands.Exchange.Bind(0, "amq.topic", "fuzz.x", "k")),
        _method(commands.Exchange.Delete(0, "fuzz.x", if_unused=True)),
        *_CLOSING,
    ),
    (
        *_OPENING,
        _method(commands.Tx.Select()),
        _method(
            commands.Queue.Declare(
                0, "fuzz.dl", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "k"}
            )
        ),
        *_published("", "fuzz.dl", b"", correlation_id="1", message_id="2", user_id=USER),
        _method(commands.Tx.Commit()),
        _method(commands.Basic.Get(0, "fuzz.dl")),
        _method(commands.Basic.Reject(1, False)),
        _method(commands.Tx.Rollback()),
        _method(commands.Queue.Purge(0, "fuzz.dl")),
        _method(commands.Queue.Unbind(0, "fuzz.dl", "amq.topic", "k")),
        _method(commands.Queue.Delete(0, "fuzz.dl")),
        b"\x08\0\0\0\0\0\0\xce",  # a heartbeat
    ),
    (
        *_OPENING,
        _method(commands.Basic.Consume(0, "amq.rabbitmq.reply-to", "r", no_ack=True)),
        _method(commands.Queue.Declare(0, "fuzz.s", durable=True, arguments={"x-queue-type": "stream"})),
        _method(
            commands.Queue.Declare(
                0, "fuzz.qq", durable=True, arguments={"x-queue-type": "quorum", "x-max-priority": 9}
            )
        ),
        _method(commands.Basic.Recover(True)),
        _method(commands.Channel.Flow(False)),
    ),
)
