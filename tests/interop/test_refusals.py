"""RabbitMQ's reply codes and texts for refused requests, tested with pika."""

from collections.abc import Callable, Iterator
from typing import Final

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker

Connect = Callable[..., BlockingConnection]
Request = Callable[[BlockingChannel], object]

REPLY_TO: Final = "amq.rabbitmq.reply-to"
IN_DEFAULT: Final = "ACCESS_REFUSED - operation not permitted on the default exchange"
INEQUIVALENT: Final = "PRECONDITION_FAILED - inequivalent arg"
INVALID: Final = "PRECONDITION_FAILED - invalid arg"


def publish(exchange: str = "", key: str = "", **properties: object) -> Request:
    """Publish with confirms, so that the call raises the refusal."""

    def request(channel: BlockingChannel) -> None:
        channel.confirm_delivery()
        channel.basic_publish(exchange, key, b"", pika.BasicProperties(**properties))

    return request


def declare(queue: str, **settings: object) -> Request:
    return lambda channel: channel.queue_declare(queue, **settings)


def declare_argument(key: str, value: object) -> Request:
    return declare("interop-argument", exclusive=True, arguments={key: value})


def settle(request: Request) -> Request:
    """Send an acknowledgement, then a declare, whose answer follows the refusal."""

    def settle_and_wait(channel: BlockingChannel) -> None:
        request(channel)
        channel.queue_declare("", exclusive=True)

    return settle_and_wait


CHANNEL_REFUSALS = [
    #            request, code, text
    pytest.param(declare("amq.mine"), 403,
                 "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'",
                 id="a queue with a reserved name"),
    pytest.param(lambda channel: channel.exchange_declare("amq.mine"), 403,
                 "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'",
                 id="an exchange with a reserved name"),
    pytest.param(lambda channel: channel.exchange_delete("amq.direct"), 403,
                 "ACCESS_REFUSED - deletion of system exchange 'amq.direct' in vhost '/' not allowed",
                 id="deleting a predeclared exchange"),
    pytest.param(lambda channel: channel.queue_bind("interop-refusals", ""), 403, IN_DEFAULT,
                 id="binding to the default exchange"),
    pytest.param(lambda channel: channel.exchange_delete(""), 403, IN_DEFAULT,
                 id="deleting the default exchange"),
    pytest.param(publish("amq.rabbitmq.trace"), 403,
                 "ACCESS_REFUSED - cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost '/'",
                 id="publishing to an internal exchange"),
    pytest.param(publish("interop-absent"), 404,
                 "NOT_FOUND - no exchange 'interop-absent' in vhost '/'",
                 id="publishing to an absent exchange"),
    pytest.param(lambda channel: channel.exchange_declare("interop-absent", passive=True), 404,
                 "NOT_FOUND - no exchange 'interop-absent' in vhost '/'",
                 id="checking an absent exchange"),
    pytest.param(declare("interop-absent", passive=True), 404,
                 "NOT_FOUND - no queue 'interop-absent' in vhost '/'",
                 id="checking an absent queue"),
    pytest.param(lambda channel: channel.basic_get("interop-absent"), 404,
                 "NOT_FOUND - no queue 'interop-absent' in vhost '/'",
                 id="getting from an absent queue"),
    pytest.param(lambda channel: channel.basic_consume("interop-absent", print), 404,
                 "NOT_FOUND - no queue 'interop-absent' in vhost '/'",
                 id="consuming from an absent queue"),
    pytest.param(lambda channel: channel.queue_bind("interop-absent", "amq.direct"), 404,
                 "NOT_FOUND - no queue 'interop-absent' in vhost '/'",
                 id="binding an absent queue"),
    pytest.param(lambda channel: channel.queue_bind("interop-refusals", "interop-absent"), 404,
                 "NOT_FOUND - no exchange 'interop-absent' in vhost '/'",
                 id="binding to an absent exchange"),
    pytest.param(lambda channel: channel.queue_purge(""), 404,
                 "NOT_FOUND - no previously declared queue",
                 id="using the last declared queue without one"),
    pytest.param(declare("interop-refusals", durable=True), 406,
                 f"{INEQUIVALENT} 'durable' for queue 'interop-refusals' in vhost '/': "
                 "received 'true' but current is 'false'",
                 id="redeclaring a queue as durable"),
    pytest.param(declare("interop-refusals", auto_delete=True), 406,
                 f"{INEQUIVALENT} 'auto_delete' for queue 'interop-refusals' in vhost '/': "
                 "received 'true' but current is 'false'",
                 id="redeclaring a queue as auto-delete"),
    pytest.param(declare("interop-refusals", arguments={"x-message-ttl": 100}), 406,
                 f"{INEQUIVALENT} 'x-message-ttl' for queue 'interop-refusals' in vhost '/': "
                 "received the value '100' of type 'signedint' but current is none",
                 id="redeclaring a queue with a further argument"),
    pytest.param(declare("interop-refusals", exclusive=True), 405,
                 "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'interop-refusals' in vhost '/'. "
                 "It could be originally declared on another connection or the exclusive property value "
                 "does not match that of the original declaration.",
                 id="redeclaring a queue as exclusive"),
    pytest.param(lambda channel: channel.exchange_declare("amq.direct", "fanout", durable=True), 406,
                 f"{INEQUIVALENT} 'type' for exchange 'amq.direct' in vhost '/': "
                 "received 'fanout' but current is 'direct'",
                 id="redeclaring an exchange with another type"),
    pytest.param(declare_argument("x-message-ttl", -1), 406,
                 f"{INVALID} 'x-message-ttl' for queue 'interop-argument' in vhost '/': {{value_negative,-1}}",
                 id="a negative time to live"),
    pytest.param(declare_argument("x-message-ttl", "soon"), 406,
                 f"{INVALID} 'x-message-ttl' for queue 'interop-argument' in vhost '/': "
                 '"expected integer, got longstr"',
                 id="a time to live which is not a number"),
    pytest.param(declare_argument("x-expires", 0), 406,
                 f"{INVALID} 'x-expires' for queue 'interop-argument' in vhost '/': {{value_zero,0}}",
                 id="a queue that expires at once"),
    pytest.param(declare_argument("x-max-priority", 256), 406,
                 f"{INVALID} 'x-max-priority' for queue 'interop-argument' in vhost '/': {{max_value_exceeded,256}}",
                 id="too many priorities"),
    pytest.param(declare_argument("x-overflow", "explode"), 406,
                 f"{INVALID} 'x-overflow' for queue 'interop-argument' in vhost '/': invalid_overflow",
                 id="an unknown overflow behaviour"),
    pytest.param(declare_argument("x-dead-letter-routing-key", "key"), 406,
                 f"{INVALID} 'x-dead-letter-routing-key' for queue 'interop-argument' in vhost '/': "
                 "routing_key_but_no_dlx_defined",
                 id="a dead-letter key without its exchange"),
    pytest.param(settle(lambda channel: channel.basic_ack(7)), 406,
                 "PRECONDITION_FAILED - unknown delivery tag 7",
                 id="acknowledging what was not delivered"),
    pytest.param(settle(lambda channel: channel.basic_nack(7)), 406,
                 "PRECONDITION_FAILED - unknown delivery tag 7",
                 id="refusing what was not delivered"),
    pytest.param(publish(expiration="soon"), 406,
                 "PRECONDITION_FAILED - invalid expiration 'soon': no_integer",
                 id="an expiration which is not a number"),
    pytest.param(publish(expiration="-1"), 406,
                 "PRECONDITION_FAILED - invalid expiration '-1': {value_negative,-1}",
                 id="a negative expiration"),
    pytest.param(publish(user_id="another"), 406,
                 "PRECONDITION_FAILED - user_id property set to 'another' but authenticated user was 'guest'",
                 id="publishing with another user_id"),
    pytest.param(publish(headers={"CC": "key"}), 406,
                 'PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",longstr}',
                 id="a CC header which is not an array"),
    pytest.param(publish(reply_to=REPLY_TO), 406,
                 "PRECONDITION_FAILED - fast reply consumer does not exist",
                 id="requesting a direct reply without a consumer"),
    pytest.param(lambda channel: channel.basic_consume(REPLY_TO, print), 406,
                 "PRECONDITION_FAILED - reply consumer cannot acknowledge",
                 id="consuming direct replies with acknowledgements"),
    pytest.param(lambda channel: (channel.confirm_delivery(), channel.tx_select()), 406,
                 "PRECONDITION_FAILED - cannot switch from confirm to tx mode",
                 id="a transaction on a confirming channel"),
    pytest.param(lambda channel: (channel.tx_select(), channel.confirm_delivery()), 406,
                 "PRECONDITION_FAILED - cannot switch from tx to confirm mode",
                 id="confirms on a transactional channel"),
    pytest.param(lambda channel: channel.tx_commit(), 406,
                 "PRECONDITION_FAILED - channel is not transactional",
                 id="committing without a transaction"),
]  # fmt: skip

CONNECTION_REFUSALS = [
    pytest.param(lambda channel: channel.exchange_declare("interop-absent", "telepathic"), 503,
                 "COMMAND_INVALID - unknown exchange type 'telepathic'",
                 id="an unknown exchange type"),
    pytest.param(lambda channel: channel.basic_qos(prefetch_size=1), 540,
                 "NOT_IMPLEMENTED - prefetch_size!=0 (1)",
                 id="a prefetch size"),
    pytest.param(lambda channel: channel.basic_recover(requeue=False), 540,
                 "NOT_IMPLEMENTED - requeue=false",
                 id="recovering to the same consumer"),
    pytest.param(lambda channel: channel.flow(active=False), 540,
                 "NOT_IMPLEMENTED - active=false",
                 id="pausing deliveries by channel.flow"),
]  # fmt: skip


@pytest.fixture
def ordinary_queue(connect: Connect) -> Iterator[None]:
    """Declare the transient, shared queue ``interop-refusals`` for the requests above."""
    owner = connect().channel()
    owner.queue_declare("interop-refusals")
    yield
    owner.queue_delete("interop-refusals")


@pytest.mark.usefixtures("ordinary_queue")
@pytest.mark.parametrize(("request_", "code", "text"), CHANNEL_REFUSALS)
def test_a_refused_request_closes_its_channel_with_the_reason(
    channel: BlockingChannel, request_: Request, code: int, text: str
) -> None:
    with pytest.raises(ChannelClosedByBroker) as closed:
        request_(channel)
    assert (closed.value.reply_code, closed.value.reply_text) == (code, text)
    assert channel.connection.channel().is_open


@pytest.mark.parametrize(("request_", "code", "text"), CONNECTION_REFUSALS)
def test_an_unsupported_request_closes_the_connection_with_the_reason(
    channel: BlockingChannel, request_: Request, code: int, text: str
) -> None:
    with pytest.raises(ConnectionClosedByBroker) as closed:
        request_(channel)
    assert (closed.value.reply_code, closed.value.reply_text) == (code, text)


def test_a_conditional_delete_keeps_a_queue_in_use_or_not_empty(channel: BlockingChannel, name: str) -> None:
    channel.queue_declare(name, exclusive=True)
    channel.confirm_delivery()
    channel.basic_publish("", name, b"still here")
    keeper = channel.connection.channel()
    with pytest.raises(ChannelClosedByBroker) as not_empty:
        keeper.queue_delete(name, if_empty=True)
    assert not_empty.value.reply_text == f"PRECONDITION_FAILED - queue '{name}' in vhost '/' not empty"

    channel.basic_consume(name, lambda *_: None)
    keeper = channel.connection.channel()
    with pytest.raises(ChannelClosedByBroker) as in_use:
        keeper.queue_delete(name, if_unused=True)
    assert in_use.value.reply_text == f"PRECONDITION_FAILED - queue '{name}' in vhost '/' in use"


def test_an_exclusive_consumer_excludes_others(channel: BlockingChannel, name: str) -> None:
    channel.queue_declare(name, exclusive=True)
    channel.basic_consume(name, lambda *_: None, exclusive=True)
    with pytest.raises(ChannelClosedByBroker) as refused:
        channel.connection.channel().basic_consume(name, lambda *_: None)
    expected = f"ACCESS_REFUSED - queue '{name}' in vhost '/' in exclusive use"
    assert (refused.value.reply_code, refused.value.reply_text) == (403, expected)


@pytest.mark.parametrize("delete", ["queue_delete", "exchange_delete"])
def test_deleting_an_absent_queue_or_exchange_succeeds(channel: BlockingChannel, name: str, delete: str) -> None:
    getattr(channel, delete)(name)
    assert channel.is_open


def test_removing_an_absent_binding_succeeds(channel: BlockingChannel, name: str) -> None:
    channel.queue_unbind(name, "amq.direct", "no such key")
    assert channel.is_open
