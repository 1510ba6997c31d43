"""``with Gateway() as broker``: a broker for a test of any program, its faults and its assertions."""

import math
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ConnectionClosedByBroker

from gateway.testing import Gateway, TestBroker, broker_process
from gateway.testing.broker_process import BrokerProcess
from tests.waiting import TIMEOUT_S, wait_until


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    with Gateway() as broker:
        yield broker


def channel_of(broker: TestBroker) -> BlockingChannel:
    return pika.BlockingConnection(pika.URLParameters(broker.amqp_url)).channel()


def test_each_block_has_a_virtual_host_and_the_next_one_the_same_process(broker: TestBroker) -> None:
    channel_of(broker).queue_declare("q")
    with Gateway() as other:
        assert other.process is broker.process
        assert other.request("GET", "queues", other.vhost) == []
    names = {vhost["name"] for vhost in broker.request("GET", "vhosts")}
    assert other.vhost not in names
    assert broker.vhost in names


def test_other_settings_are_another_process(broker: TestBroker) -> None:
    with Gateway(["amqp.heartbeat_s=7"]) as other:
        assert other.process is not broker.process
        assert other.request("GET", "settings", "amqp.heartbeat_s")["value"] == 7


def test_each_protocol_has_a_url(broker: TestBroker) -> None:
    ports = broker.process.ports
    assert broker.amqp_url == f"amqp://guest:guest@127.0.0.1:{ports['amqp']}/{broker.vhost}"
    assert broker.mqtt_url == f"mqtt://{broker.vhost}%3Aguest:guest@127.0.0.1:{ports['mqtt']}"
    assert broker.stomp_url == f"stomp://guest:guest@127.0.0.1:{ports['stomp']}"
    assert broker.web_mqtt_url == f"ws://127.0.0.1:{ports['web_mqtt']}/ws"
    assert broker.web_stomp_url == f"ws://127.0.0.1:{ports['web_stomp']}/ws"
    assert broker.management_url == f"http://guest:guest@127.0.0.1:{ports['management']}"


def test_routes_are_asserted_without_publishing(broker: TestBroker) -> None:
    channel = channel_of(broker)
    channel.exchange_declare("e", "topic")
    for queue, key in (("all", "#"), ("eu", "eu.*")):
        channel.queue_declare(queue)
        channel.queue_bind(queue, "e", key)
    assert broker.routed("e", "eu.paid") == {"all", "eu"}
    broker.assert_routed("e", "us.paid", "all")
    with pytest.raises(AssertionError, match=r"'e' routes 'us.paid' to all, not to no queue"):
        broker.assert_routed("e", "us.paid")
    channel.exchange_declare("h", "headers")
    channel.queue_bind("eu", "h", arguments={"x-match": "all", "region": "eu"})
    broker.assert_routed("h", "", "eu", headers={"region": "eu"})
    assert channel.queue_declare("all", passive=True).method.message_count == 0


def test_what_arrived_is_asserted_and_stays(broker: TestBroker) -> None:
    channel = channel_of(broker)
    channel.queue_declare("q")
    for body in (b"one", b"\xff\x00"):
        channel.basic_publish("", "q", body)
    broker.assert_arrived("q", b"one", b"\xff\x00")
    with pytest.raises(AssertionError, match=r"queue 'q' has \[b'one', b'\\xff\\x00'\], not \[b'two'\]"):
        broker.assert_arrived("q", b"two", timeout_s=0)
    method, _, body = channel.basic_get("q")
    assert (method.redelivered, body) == (False, b"one")
    assert broker.bodies("q") == [b"\xff\x00"]
    with pytest.raises(RuntimeError, match="404"):
        broker.bodies("unknown")


def test_connections_of_the_virtual_host_are_dropped(broker: TestBroker) -> None:
    channel = channel_of(broker)
    with Gateway() as other:
        kept = channel_of(other)
        assert wait_until(broker.drop_connections) == 1
        with pytest.raises(ConnectionClosedByBroker):
            channel.queue_declare("q")
        assert kept.queue_declare("q").method.queue == "q"


def test_a_paused_broker_confirms_later(broker: TestBroker) -> None:
    channel = channel_of(broker)
    channel.queue_declare("q")
    confirmed: list[int] = []
    connection = channel.connection
    channel._impl.confirm_delivery(lambda frame: confirmed.append(frame.method.delivery_tag))
    connection.process_data_events(1)
    with broker.paused():
        channel._impl.basic_publish("", "q", b"m")
        connection.process_data_events(0.2)
        assert confirmed == []
    wait_until(lambda: connection.process_data_events(0.05) or confirmed)
    assert confirmed == [1]


def test_blocks_of_a_paused_broker_may_be_nested(broker: TestBroker) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
    declared: list[object] = []
    with broker.paused():
        with broker.paused():
            pass
        connection._impl.channel(on_open_callback=declared.append)
        connection.process_data_events(0.2)  # longer than an answer takes
        assert declared == []
    wait_until(lambda: connection.process_data_events(0.05) or declared)
    assert len(declared) == 1


def test_delayed_confirms_come_after_the_block_and_deliveries_do_not_wait(broker: TestBroker) -> None:
    channel = channel_of(broker)
    channel.queue_declare("q", durable=True)
    confirmed: list[int] = []
    connection = channel.connection
    channel._impl.confirm_delivery(lambda frame: confirmed.append(frame.method.delivery_tag))
    with broker.delayed_confirms():
        channel._impl.basic_publish("", "q", b"m", pika.BasicProperties(delivery_mode=2))
        wait_until(lambda: channel.basic_get("q", auto_ack=False)[2] == b"m")
        connection.process_data_events(0.2)  # longer than a commit takes
        assert confirmed == []
        with broker.delayed_confirms():
            pass
        connection.process_data_events(0.2)
        assert confirmed == []
    wait_until(lambda: connection.process_data_events(0.05) or confirmed)
    assert confirmed == [1]


def test_a_paused_broker_cannot_be_controlled_and_time_does_not_go_back() -> None:
    with Gateway(fake_clock=True) as broker:
        with broker.paused(), pytest.raises(RuntimeError, match="the broker is paused"):
            broker.advance(1)
        for seconds in (-1, math.nan, math.inf):
            with pytest.raises(ValueError, match="seconds of 0 or more"):
                broker.advance(seconds)
        broker.advance(0)


def test_a_broker_is_paused_after_what_another_thread_lets_it_do(tmp_path: Path) -> None:
    """An advance that has been sent gets its answer before the broker stops; a later one is refused."""
    process = BrokerProcess(tmp_path, has_fake_clock=True)
    steps: list[str] = []

    def advance() -> None:
        while True:
            try:
                process.advance(0.001)
            except RuntimeError as error:
                steps.append(str(error))
                return
            steps.append("advanced")

    with ThreadPoolExecutor(1) as other:
        advancing = other.submit(advance)
        try:
            wait_until(lambda: steps)
            process.pause()
            advancing.result(TIMEOUT_S)
        finally:
            process.stop()
    assert steps[-1] == "the broker is paused"


def test_a_pause_that_would_wait_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_process, "_PAUSE_TIMEOUT_S", 0.05)
    process = BrokerProcess(tmp_path)
    with process._controlling, pytest.raises(RuntimeError, match="another thread controls it"):
        process.pause()
    assert len(process.request("GET", "vhosts")) == 1
    process.pause()
    process.stop()  # also a paused one
    assert process.exit_status == 0


def test_a_broker_ends_in_order(tmp_path: Path) -> None:
    process = BrokerProcess(tmp_path, has_fake_clock=True)
    process.stop()
    assert process.exit_status == 0
    with pytest.raises(RuntimeError, match="the broker has ended"):
        process.advance(1)


def test_long_bodies_and_long_queues_are_read_whole(broker: TestBroker) -> None:
    channel = channel_of(broker)
    channel.queue_declare("big")
    channel.queue_declare("many")
    channel.basic_publish("", "big", b"x" * 300_000)
    for _ in range(600):
        channel.basic_publish("", "many", b"m")
    broker.assert_arrived("big", b"x" * 300_000)
    broker.assert_arrived("many", *[b"m"] * 600)
    with pytest.raises(AssertionError, match="queue 'many' has"):
        broker.assert_arrived("many", *[b"m"] * 500, timeout_s=0)
    channel.basic_publish("", "big", b"x" * (2**20 + 1))
    with pytest.raises(RuntimeError, match="a body of 1048577 bytes"):
        wait_until(lambda: len(broker.bodies("big")) > 1)


def test_confirms_cannot_be_delayed_on_disk() -> None:
    with Gateway(['storage.engine="lmdb"']) as broker:
        with pytest.raises(RuntimeError, match="it needs the store in memory"), broker.delayed_confirms():
            pass
        assert broker.request("GET", "queues", broker.vhost) == []


def test_the_broker_ends_with_the_program_that_is_killed(tmp_path: Path) -> None:
    program = "from gateway.testing import Gateway\nbroker = Gateway().__enter__()\n"
    program += "print(broker.amqp_port, flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as child:
        assert child.stdout is not None
        port = int(child.stdout.readline())
        socket.create_connection(("127.0.0.1", port), timeout=10).close()
        child.kill()

    def is_closed() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=10).close()
        except ConnectionRefusedError:
            return True
        return False

    wait_until(is_closed, "the broker outlives its program")


def test_a_full_disk_blocks_publishers_until_the_block_ends(broker: TestBroker) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
    seen: list[str] = []
    connection.add_on_connection_blocked_callback(lambda connection, frame: seen.append(frame.method.reason))
    connection.add_on_connection_unblocked_callback(lambda connection, frame: seen.append("unblocked"))
    channel = connection.channel()
    channel.queue_declare("q")
    with broker.full_disk():
        channel.basic_publish("", "q", b"m")
        wait_until(lambda: connection.process_data_events(0.05) or seen)
        assert seen == ["low on disk"]
    wait_until(lambda: connection.process_data_events(0.05) or len(seen) == 2)
    assert seen[-1] == "unblocked"
    wait_until(lambda: channel.queue_declare("q", passive=True).method.message_count == 1)


def test_the_clock_moves_on_request() -> None:
    with Gateway(fake_clock=True) as broker:
        channel = channel_of(broker)
        channel.confirm_delivery()
        channel.queue_declare("q", arguments={"x-message-ttl": 3_600_000})
        channel.basic_publish("", "q", b"m")
        broker.advance(3600)
        assert channel.queue_declare("q", passive=True).method.message_count == 0


def test_blocks_with_the_same_settings_share_the_clock_and_a_block_with_others_has_its_own() -> None:
    with (
        Gateway(fake_clock=True) as broker,
        Gateway(fake_clock=True) as same,
        Gateway(["log.level=warning"], fake_clock=True) as other,
    ):
        channels = [channel_of(each) for each in (same, other)]
        for channel in channels:
            channel.confirm_delivery()
            channel.queue_declare("q", arguments={"x-message-ttl": 3_600_000})
            channel.basic_publish("", "q", b"m")
        broker.advance(3600)
        counts = [channel.queue_declare("q", passive=True).method.message_count for channel in channels]
    assert counts == [0, 1]


def test_a_broker_that_ended_is_replaced() -> None:
    settings = ("log.level=error", "stomp.port=off")  # a process of its own, with a listener less
    broker = Gateway(settings).__enter__()
    broker.process._child.kill()
    broker.process._child.wait()
    with Gateway(settings) as other:
        assert other.process is not broker.process
        assert "stomp" not in other.process.ports
        assert other.request("GET", "queues", other.vhost) == []
