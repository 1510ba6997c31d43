"""Rows of the conformance tables: frames sent on channel 1 in one write, and the lines of the answers."""

from typing import TypeAlias

import pytest
from _pytest.mark import ParameterSet
from pamqp import commands
from pamqp.base import Frame

from gateway.kernel.messages.message import Arguments
from gateway_amqp.methods import encode_method
from tests.protocols.amqp.dialogue import Gateway
from tests.protocols.amqp.frames import Sent, asked

Row: TypeAlias = ParameterSet

EOF = "EOF"

CLOSE_CHANNEL = commands.Channel.Close(200, "bye", 0, 0)
CLOSE = commands.Connection.Close(200, "bye", 0, 0)
CHANNEL_CLOSED = "Channel.CloseOk()"
OPENED = "Channel.OpenOk(channel_id='')"

#: A request and its answer, which show that the channel is still open.
PROBE = asked(commands.Queue.Declare, queue="okq")
ALIVE = "Queue.DeclareOk(queue='okq', message_count=0, consumer_count=0)"


def row(id: str, sent: list[Sent], *answers: str) -> Row:
    """Return one row; ``id`` names the clause, or describes the row in words."""
    return pytest.param(sent, list(answers), id=id)


def passes(id: str, *sent: Sent) -> Row:
    """Return a row for a request without an answer: the channel stays open."""
    return pytest.param([*sent, PROBE], [ALIVE], id=id)


def channel_close(text: str, class_id: int, method_id: int) -> str:
    """Return the line of a channel error; its text begins with the code's name."""
    return f"Channel.Close {CODES[text.split(' - ')[0]]} {text} ({class_id},{method_id})"


def connection_close(text: str, class_id: int = 0, method_id: int = 0) -> str:
    """Return the line of a connection error."""
    return f"Connection.Close {CODES[text.split(' - ')[0]]} {text} ({class_id},{method_id})"


#: 1.8 of the specification.
CODES = {
    "CONNECTION_FORCED": 320,
    "INVALID_PATH": 402,
    "ACCESS_REFUSED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_LOCKED": 405,
    "PRECONDITION_FAILED": 406,
    "FRAME_ERROR": 501,
    "SYNTAX_ERROR": 502,
    "COMMAND_INVALID": 503,
    "CHANNEL_ERROR": 504,
    "UNEXPECTED_FRAME": 505,
    "NOT_ALLOWED": 530,
    "NOT_IMPLEMENTED": 540,
    "INTERNAL_ERROR": 541,
}


def declared(queue: str, messages: int = 0, consumers: int = 0) -> str:
    return f"Queue.DeclareOk(queue={queue!r}, message_count={messages}, consumer_count={consumers})"


def got(tag: int, queue: str, body: bytes = b"hi", *, left: int = 0, redelivered: bool = False) -> str:
    """Return the line of a get from a queue to which the message was published by the queue's name."""
    return (
        f"Basic.GetOk(delivery_tag={tag}, redelivered={redelivered}, exchange='', routing_key={queue!r}, "
        f"message_count={left}) {body!r}"
    )


def delivered(
    consumer: str, tag: int, key: str, body: bytes = b"hi", *, redelivered: bool = False, exchange: str = ""
) -> str:
    return (
        f"Basic.Deliver(consumer_tag={consumer!r}, delivery_tag={tag}, redelivered={redelivered}, "
        f"exchange={exchange!r}, routing_key={key!r}) {body!r}"
    )


def returned(key: str, body: bytes = b"hi", *, exchange: str = "") -> str:
    return f"Basic.Return(reply_code=312, reply_text='NO_ROUTE', exchange={exchange!r}, routing_key={key!r}) {body!r}"


def acked(tag: int, multiple: bool = False) -> str:
    return f"Basic.Ack(delivery_tag={tag}, multiple={multiple})"


def nacked(tag: int) -> str:
    return f"Basic.Nack(delivery_tag={tag}, multiple=False, requeue=True)"


def queue(name: str, **properties: object) -> commands.Queue.Declare:
    return asked(commands.Queue.Declare, queue=name, **properties)


def queue_with(name: str, arguments: Arguments, **properties: object) -> commands.Queue.Declare:
    return asked(commands.Queue.Declare, queue=name, arguments=arguments, **properties)


def exchange(name: str, type: str = "direct", **properties: object) -> commands.Exchange.Declare:
    return asked(commands.Exchange.Declare, exchange=name, exchange_type=type, **properties)


def bind(queue: str, exchange: str, key: str = "", **properties: object) -> commands.Queue.Bind:
    return asked(commands.Queue.Bind, queue=queue, exchange=exchange, routing_key=key, **properties)


def unbind(queue: str, exchange: str, key: str = "") -> commands.Queue.Unbind:
    return asked(commands.Queue.Unbind, queue=queue, exchange=exchange, routing_key=key)


def bind_exchange(destination: str, source: str, key: str = "") -> commands.Exchange.Bind:
    return asked(commands.Exchange.Bind, destination=destination, source=source, routing_key=key)


def unbind_exchange(destination: str, source: str, key: str = "") -> commands.Exchange.Unbind:
    return asked(commands.Exchange.Unbind, destination=destination, source=source, routing_key=key)


def delete(queue: str, **properties: object) -> commands.Queue.Delete:
    return asked(commands.Queue.Delete, queue=queue, **properties)


def delete_exchange(exchange: str, **properties: object) -> commands.Exchange.Delete:
    return asked(commands.Exchange.Delete, exchange=exchange, **properties)


def purge(queue: str) -> commands.Queue.Purge:
    return asked(commands.Queue.Purge, queue=queue)


def consume(queue: str, tag: str = "c", **properties: object) -> commands.Basic.Consume:
    return asked(commands.Basic.Consume, queue=queue, consumer_tag=tag, **properties)


def cancel(tag: str = "c", **properties: object) -> commands.Basic.Cancel:
    return asked(commands.Basic.Cancel, consumer_tag=tag, **properties)


def get(queue: str, no_ack: bool = False) -> commands.Basic.Get:
    return asked(commands.Basic.Get, queue=queue, no_ack=no_ack)


def ack(tag: int, multiple: bool = False) -> commands.Basic.Ack:
    return commands.Basic.Ack(tag, multiple)


def nack(tag: int, multiple: bool = False, requeue: bool = True) -> commands.Basic.Nack:
    return commands.Basic.Nack(tag, multiple, requeue)


def reject(tag: int, requeue: bool = True) -> commands.Basic.Reject:
    return commands.Basic.Reject(tag, requeue)


def furnish(gateway: Gateway) -> None:
    """Declare the reference's entities: transient ``t``, durable ``d``, ``inuse``, ``ne`` and four exchanges."""
    vhost = gateway.vhost
    vhost.declare_queue("t")
    vhost.declare_queue("d", is_durable=True)
    vhost.declare_exchange("xd", "direct", is_durable=True)
    vhost.declare_exchange("xf", "fanout")
    vhost.declare_exchange("xint", "fanout", is_internal=True)
    xused = vhost.declare_exchange("xused", "fanout")
    vhost.bind(xused, vhost.queue("t"), "")
    gateway.settle()


def on_channel(method: Frame, channel: int) -> bytes:
    """Return a method on a channel, which may be the wrong one for it."""
    return encode_method(channel, method)
