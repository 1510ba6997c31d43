"""A full disk: publishers are blocked with the reason, consumers continue, and confirmed messages are intact."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pika
from pika.adapters.blocking_connection import BlockingConnection

from tests.broker.conftest import Connect
from tests.durability.expected import ExpectedMessages
from tests.durability.load import Publisher
from tests.durability.test_killed_under_load import contents
from tests.interop.amqp_clients.pika_client import fetch
from tests.running import Gateway
from tests.waiting import wait_until, wait_until_stable

PERSISTENT: Final = pika.BasicProperties(delivery_mode=2)
TIMEOUT_S: Final = 15.0


class BlockedNotifications:
    """The connection.blocked notifications of a connection."""

    def __init__(self, connection: BlockingConnection) -> None:
        self.reasons: list[str] = []
        self.was_unblocked = False
        self._connection = connection
        connection.add_on_connection_blocked_callback(self._blocked)
        connection.add_on_connection_unblocked_callback(self._unblocked)

    def wait(self, happened: Callable[[], object]) -> None:
        """Serve the connection until the condition holds."""
        deadline = time.monotonic() + TIMEOUT_S
        while not happened():
            assert time.monotonic() < deadline, "the condition was not met in time"
            self._connection.process_data_events(time_limit=0.05)

    def _blocked(self, _connection: BlockingConnection, frame: Any) -> None:  # Any: pika's frame around the method
        self.reasons.append(frame.method.reason)

    def _unblocked(self, _connection: BlockingConnection, _frame: Any) -> None:
        self.was_unblocked = True


def test_publishers_are_blocked_and_confirmed_messages_are_intact(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    channel = connect().channel()
    channel.queue_declare("q", durable=True)
    expected = ExpectedMessages()
    publishers = [Publisher(gateway.broker, name, 0, "", "q", [expected], 20) for name in "ab"]
    gateway.limit_files(4 * 2**20)
    for publisher in publishers:
        publisher.start()
    gateway.log_has("store.stalled")
    confirmed = wait_until_stable(lambda: len(expected.required))  # nothing is confirmed that cannot be on disk
    assert confirmed > 20
    assert all(publisher.is_alive() for publisher in publishers), "a publisher was disconnected"

    gateway.limit_files(None)
    gateway.log_has("store.resumed")
    wait_until(lambda: len(expected.required) > confirmed + 200)
    gateway.kill()
    for publisher in publishers:
        publisher.ended()
    gateway.start()
    expected.audit(contents(connect().channel(), "q"))


def test_a_kill_while_the_disk_is_full_loses_nothing_confirmed(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    connect().channel().queue_declare("q", durable=True)
    expected = ExpectedMessages()
    publisher = Publisher(gateway.broker, "a", 0, "", "q", [expected], 20)
    gateway.limit_files(3 * 2**20)
    publisher.start()
    gateway.log_has("store.stalled")
    gateway.kill()
    publisher.ended()
    assert len(expected.required) > 20
    gateway.start()
    expected.audit(contents(connect().channel(), "q"))


def test_clients_are_notified_and_consumers_continue(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    consuming = connect().channel()
    consuming.queue_declare("q", durable=True)
    consuming.confirm_delivery()
    for number in range(50):
        consuming.basic_publish("", "q", str(number).encode(), PERSISTENT)
    consumer = connect().channel()
    publishing = connect()
    notifications = BlockedNotifications(publishing)
    publisher = publishing.channel()
    publisher.queue_declare("filling", durable=True)
    gateway.limit_files(256 * 1024)
    for _ in range(20):
        publisher.basic_publish("", "filling", bytes(100_000), PERSISTENT)
    notifications.wait(lambda: notifications.reasons)
    assert notifications.reasons == ["the store cannot write"]
    assert fetch(consumer, "q", 50) == [str(number).encode() for number in range(50)]
    gateway.limit_files(None)
    notifications.wait(lambda: notifications.was_unblocked)
    publisher.confirm_delivery()
    publisher.basic_publish("", "filling", b"after", PERSISTENT)
    assert publisher.queue_declare("filling", passive=True).method.message_count == 21


# Watermarks


def take_disk_space(directory: Path, size: int) -> Path:
    """Allocate disk space without writing it."""
    file = directory / "ballast"
    with file.open("wb") as opened:
        os.posix_fallocate(opened.fileno(), 0, size)
    return file


def test_low_disk_space_blocks_publishers_until_there_is_more(
    gateway: Gateway, connect: Connect, tmp_path: Path
) -> None:
    free = shutil.disk_usage(tmp_path).free
    margin = min(free // 4, 2**30)
    gateway.start(f"disk_free_limit={free - margin}")
    connection = connect()
    notifications = BlockedNotifications(connection)
    channel = connection.channel()
    channel.queue_declare("q", durable=True)
    channel.basic_publish("", "q", b"before", PERSISTENT)
    ballast = take_disk_space(tmp_path, 2 * margin)
    notifications.wait(lambda: notifications.reasons)
    assert notifications.reasons == ["low on disk"]
    channel.basic_publish("", "q", b"blocked", PERSISTENT)
    consumer = connect().channel()
    assert fetch(consumer, "q", 1) == [b"before"]
    ballast.unlink()
    notifications.wait(lambda: notifications.was_unblocked)
    notifications.wait(lambda: consumer.queue_declare("q", passive=True).method.message_count == 1)
    assert fetch(consumer, "q", 1) == [b"blocked"]


def test_an_alarm_raised_before_a_connection_blocks_its_first_publish(gateway: Gateway, connect: Connect) -> None:
    gateway.start("disk_free_limit=1000000TB")
    connection = connect()
    notifications = BlockedNotifications(connection)
    channel = connection.channel()
    channel.queue_declare("q")
    connection.process_data_events(time_limit=0.3)
    assert notifications.reasons == [], "a connection that does not publish is not blocked"
    channel.basic_publish("", "q", b"first")
    notifications.wait(lambda: notifications.reasons)
    assert notifications.reasons == ["low on disk"]


def test_high_memory_use_blocks_publishers_until_consumers_free_memory(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    limit = gateway.private_memory() + 40 * 2**20
    gateway.stop()
    gateway.start(f"memory_high_watermark={limit}", "queues.resident_messages=100000")
    connection = connect()
    notifications = BlockedNotifications(connection)
    connection.channel().basic_publish("amq.fanout", "", b"publishing connections are notified")
    publisher = connect().channel()
    publisher.queue_declare("q")
    sizes: list[int] = []

    def publish() -> None:
        for _ in range(80):  # any of them may raise the alarm
            publisher.basic_publish("", "q", bytes(2**20))

    def has_taken_all() -> bool:
        method, _, body = consumer.basic_get("q", auto_ack=True)
        if method is not None:
            sizes.append(len(body))
        return len(sizes) == 80

    publishing = Thread(target=publish, daemon=True)
    publishing.start()
    notifications.wait(lambda: notifications.reasons)
    assert notifications.reasons == ["low on memory"]
    consumer = connect().channel()
    wait_until(has_taken_all)
    publishing.join(TIMEOUT_S)
    assert sizes == [2**20] * 80
    notifications.wait(lambda: notifications.was_unblocked)


def test_a_client_without_the_blocked_capability_is_blocked_too(gateway: Gateway, connect: Connect) -> None:
    gateway.start("disk_free_limit=1000000TB")
    watching = connect().channel()
    watching.queue_declare("q")
    incapable = connect(client_properties={"capabilities": {"connection.blocked": False}})
    notifications = BlockedNotifications(incapable)
    channel = incapable.channel()
    for _ in range(20):
        channel.basic_publish("", "q", b"x")
        incapable.process_data_events(time_limit=0.02)
    assert watching.queue_declare("q", passive=True).method.message_count < 20
    assert notifications.reasons == []
