"""py-amqp, the client under kombu and Celery, used directly."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import amqp
import pytest
from amqp.exceptions import AccessRefused, NotFound, PreconditionFailed, ResourceLocked

from tests.interop.broker import Broker

Connect = Callable[..., amqp.Connection]

REPLY_TO: Final = "amq.rabbitmq.reply-to"
ARRIVAL_TIMEOUT_S: Final = 10.0


@pytest.fixture
def amqp_connect(broker: Broker) -> Iterator[Connect]:
    """Open py-amqp connections; they are closed when the test ends."""
    opened: list[amqp.Connection] = []

    def open_connection(**overrides: object) -> amqp.Connection:
        settings: dict[str, object] = {
            "host": f"{broker.host}:{broker.port}",
            "userid": broker.user,
            "password": broker.password,
            "virtual_host": broker.vhost,
            "connect_timeout": 5,
            "read_timeout": 10,
            "write_timeout": 10,
        }
        opened.append(amqp.Connection(**{**settings, **overrides}))
        opened[-1].connect()
        return opened[-1]

    yield open_connection
    for connection in opened:
        connection.collect()


@pytest.fixture
def amqp_channel(amqp_connect: Connect) -> amqp.Channel:
    return amqp_connect().channel()


@pytest.fixture
def queue(amqp_channel: amqp.Channel, name: str) -> str:
    amqp_channel.queue_declare(name, exclusive=True, auto_delete=False)
    return name


def publish(channel: amqp.Channel, queue: str, *bodies: bytes) -> None:
    for body in bodies:
        channel.basic_publish(amqp.Message(body), "", queue)


def wait_for(connection: amqp.Connection, happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + ARRIVAL_TIMEOUT_S
    while not happened():
        connection.drain_events(timeout=deadline - time.monotonic())


def stays_silent(connection: amqp.Connection, seconds: float = 0.3) -> bool:
    try:
        connection.drain_events(timeout=seconds)
    except TimeoutError:
        return True
    return False


def test_the_broker_announces_its_capabilities(amqp_connect: Connect) -> None:
    capabilities = amqp_connect().server_capabilities
    assert capabilities == {
        "publisher_confirms": True,
        "exchange_exchange_bindings": True,
        "basic.nack": True,
        "consumer_cancel_notify": True,
        "connection.blocked": True,
        "consumer_priorities": True,
        "authentication_failure_close": True,
        "per_consumer_qos": True,
        "direct_reply_to": True,
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
def test_a_login_is_accepted(amqp_connect: Connect, mechanism: str) -> None:
    assert amqp_connect(login_method=mechanism).connected


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
def test_a_wrong_password_is_refused(amqp_connect: Connect, mechanism: str) -> None:
    with pytest.raises(AccessRefused, match=f"using authentication mechanism {mechanism}"):
        amqp_connect(login_method=mechanism, password="wrong")


def test_a_publish_waits_for_its_confirm(amqp_connect: Connect, name: str) -> None:
    connection = amqp_connect(confirm_publish=True)
    channel = connection.channel()
    channel.queue_declare(name, exclusive=True, auto_delete=False)
    confirmed: list[int] = []
    channel.events["basic_ack"].add(lambda tag, multiple: confirmed.append(tag))
    publish(channel, name, b"1", b"2", b"3")
    assert confirmed == [1, 2, 3]
    assert channel.queue_declare(name, passive=True).message_count == 3


def test_deliveries_arrive_in_order(amqp_channel: amqp.Channel, queue: str) -> None:
    arrived: list[bytes] = []
    amqp_channel.basic_consume(queue, no_ack=True, callback=lambda message: arrived.append(message.body))
    bodies = [b"%d" % number for number in range(100)]
    publish(amqp_channel, queue, *bodies)
    wait_for(amqp_channel.connection, lambda: len(arrived) == len(bodies))
    assert arrived == bodies


def test_get_returns_a_message_or_nothing(amqp_channel: amqp.Channel, queue: str) -> None:
    assert amqp_channel.basic_get(queue) is None
    publish(amqp_channel, queue, b"one", b"two")
    message = amqp_channel.basic_get(queue)
    assert (message.body, message.delivery_info["message_count"]) == (b"one", 1)


def test_an_acknowledged_message_is_not_recovered(amqp_channel: amqp.Channel, queue: str) -> None:
    publish(amqp_channel, queue, b"done", b"open")
    amqp_channel.basic_ack(amqp_channel.basic_get(queue).delivery_tag)
    amqp_channel.basic_get(queue)
    amqp_channel.basic_recover(requeue=True)
    assert amqp_channel.basic_get(queue).body == b"open"
    assert amqp_channel.basic_get(queue) is None


@pytest.mark.parametrize(("requeue", "comes_back"), [(True, True), (False, False)])
def test_a_rejected_message_is_redelivered_if_requeued(
    amqp_channel: amqp.Channel, queue: str, requeue: bool, comes_back: bool
) -> None:
    publish(amqp_channel, queue, b"again")
    amqp_channel.basic_reject(amqp_channel.basic_get(queue).delivery_tag, requeue=requeue)
    message = amqp_channel.basic_get(queue)
    assert (message is not None) is comes_back
    assert message is None or message.delivery_info["redelivered"]


def test_qos_limits_unacknowledged_messages(amqp_channel: amqp.Channel, queue: str) -> None:
    arrived: list[amqp.Message] = []
    amqp_channel.basic_qos(prefetch_size=0, prefetch_count=1, a_global=False)
    amqp_channel.basic_consume(queue, callback=arrived.append)
    publish(amqp_channel, queue, b"1", b"2")
    wait_for(amqp_channel.connection, lambda: len(arrived) == 1)
    assert stays_silent(amqp_channel.connection)
    amqp_channel.basic_ack(arrived[0].delivery_tag)
    wait_for(amqp_channel.connection, lambda: len(arrived) == 2)


def test_a_cancelled_consumer_receives_nothing_more(amqp_channel: amqp.Channel, queue: str) -> None:
    arrived: list[amqp.Message] = []
    amqp_channel.basic_consume(queue, consumer_tag="watcher", no_ack=True, callback=arrived.append)
    amqp_channel.basic_cancel("watcher")
    publish(amqp_channel, queue, b"late")
    assert stays_silent(amqp_channel.connection)
    assert (arrived, amqp_channel.basic_get(queue).body) == ([], b"late")


def test_the_broker_cancels_the_consumer_of_a_deleted_queue(amqp_channel: amqp.Channel, queue: str) -> None:
    cancelled: list[str] = []
    amqp_channel.basic_consume(queue, consumer_tag="watcher", callback=print, on_cancel=cancelled.append)
    amqp_channel.connection.channel().queue_delete(queue)
    wait_for(amqp_channel.connection, lambda: cancelled == ["watcher"])


def test_an_exclusive_queue_is_locked_for_a_second_connection(amqp_connect: Connect, queue: str) -> None:
    with pytest.raises(ResourceLocked) as locked:
        amqp_connect().channel().queue_declare(queue, exclusive=True)
    assert locked.value.reply_code == 405


@pytest.mark.parametrize(
    ("request_", "refusal"),
    [
        pytest.param(lambda channel: channel.queue_declare("interop-absent", passive=True), NotFound, id="404"),
        pytest.param(lambda channel: channel.queue_declare("amq.reserved"), AccessRefused, id="403"),
        pytest.param(lambda channel: channel.exchange_declare("amq.direct", "fanout"), PreconditionFailed, id="406"),
    ],
)
def test_a_refusal_raises_the_exception_of_its_code(
    amqp_channel: amqp.Channel, request_: Callable[[amqp.Channel], Any], refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        request_(amqp_channel)
    assert amqp_channel.connection.channel().is_open


def test_a_transaction_is_committed_or_rolled_back(amqp_channel: amqp.Channel, queue: str) -> None:
    amqp_channel.tx_select()
    publish(amqp_channel, queue, b"discarded")
    amqp_channel.tx_rollback()
    publish(amqp_channel, queue, b"kept")
    amqp_channel.tx_commit()
    assert amqp_channel.basic_get(queue).body == b"kept"
    assert amqp_channel.basic_get(queue) is None


def test_an_unroutable_mandatory_message_is_returned(amqp_channel: amqp.Channel, name: str) -> None:
    returned: list[tuple[Any, ...]] = []
    amqp_channel.events["basic_return"].add(lambda *parts: returned.append(parts))
    amqp_channel.basic_publish(amqp.Message(b"nowhere to go"), "", name, mandatory=True)
    wait_for(amqp_channel.connection, lambda: returned)
    error, exchange, routing_key, message = returned[0]
    assert (error.reply_code, exchange, routing_key, message.body) == (312, "", name, b"nowhere to go")


def test_headers_of_every_type_survive(amqp_channel: amqp.Channel, queue: str) -> None:
    headers = {
        "text": "größer",
        "true": True,
        "int": -7,
        "long": 2**40,
        "double": 2.5,
        "decimal": Decimal("12.345"),
        "timestamp": datetime(2024, 2, 29, 12, 30, tzinfo=UTC).replace(tzinfo=None),
        "nothing": None,
        "array": [1, "two", [3.5, None]],
        "table": {"nested": {"deeper": [True, False]}},
    }
    amqp_channel.basic_publish(amqp.Message(b"", application_headers=headers), "", queue)
    assert amqp_channel.basic_get(queue).headers == headers


@pytest.mark.parametrize("size", [0, 1024 * 1024 + 1])
def test_a_body_of_any_size_is_delivered_unchanged(amqp_channel: amqp.Channel, queue: str, size: int) -> None:
    publish(amqp_channel, queue, b"\xce" * size)
    assert bytes(amqp_channel.basic_get(queue).body or b"") == b"\xce" * size


def test_an_exchange_can_be_bound_to_an_exchange(amqp_channel: amqp.Channel, name: str, queue: str) -> None:
    source, target = f"{name}-source", f"{name}-target"
    amqp_channel.exchange_declare(source, "direct", auto_delete=True)
    amqp_channel.exchange_declare(target, "fanout", auto_delete=True)
    amqp_channel.queue_bind(queue, target)
    amqp_channel.exchange_bind(target, source, "key")
    amqp_channel.basic_publish(amqp.Message(b"through both"), source, "key")
    assert amqp_channel.basic_get(queue).body == b"through both"


def test_a_direct_reply_is_received(amqp_channel: amqp.Channel, queue: str) -> None:
    replies: list[bytes] = []
    amqp_channel.basic_consume(REPLY_TO, no_ack=True, callback=lambda message: replies.append(message.body))
    amqp_channel.basic_publish(amqp.Message(b"question", reply_to=REPLY_TO), "", queue)
    server = amqp_channel.connection.channel()
    request = server.basic_get(queue, no_ack=True)
    publish(server, request.properties["reply_to"], b"answer")
    wait_for(amqp_channel.connection, lambda: replies == [b"answer"])


def test_a_client_without_heartbeats_is_disconnected(amqp_connect: Connect) -> None:
    connection = amqp_connect(heartbeat=1)
    started = time.monotonic()
    with pytest.raises(OSError, match=r"closed|reset"):
        wait_for(connection, lambda: False)
    assert 1.5 < time.monotonic() - started < 8


def test_the_broker_sends_heartbeats_to_an_idle_client(amqp_connect: Connect) -> None:
    connection = amqp_connect(heartbeat=1)
    frames_before = connection.bytes_recv  # py-amqp counts frames here, not bytes
    ends = time.monotonic() + 3.5
    while time.monotonic() < ends:
        stays_silent(connection, seconds=0.1)
        connection.heartbeat_tick()  # sends ours, and raises when the broker missed its own
    assert connection.bytes_recv - frames_before >= 3
