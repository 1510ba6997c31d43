"""Retained messages are sent to a new subscriber in order, with bounded memory."""

import pytest

from gateway.kernel.journal.changes import Enqueued
from gateway.net.outbox import HIGH_WATER
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import options

COUNT = 400
SIZE = 10_000


def body(number: int) -> bytes:
    return b"%04d" % number + bytes(SIZE - 4)


@pytest.fixture
def gateway() -> Gateway:
    """Return a broker with 4 MB of retained messages and a default Receive Maximum of three."""
    gateway = Gateway(prefetch=3)
    writer = gateway.client("w")
    for number in range(COUNT):
        writer.publish(f"t/{number}", body(number), qos=1, id=1, retain=True)
    return gateway


def numbers(received: list[str]) -> list[int]:
    return [int(line.split("'")[1][:4]) for line in received if line.startswith("PUBLISH")]


def waiting_bytes(gateway: Gateway, client_id: str) -> int:
    session = gateway.vhost.sessions.get(client_id)
    assert session is not None
    return sum(queue.ready.bytes for queue in session.own_queues())


def read_all(client: Client) -> list[int]:
    """Read and acknowledge until nothing more arrives."""
    came: list[int] = []
    while received := client.receive():
        came += numbers(received)
        for line in received:
            if line.startswith("PUBLISH q1"):
                client.machine.receive(client.write.puback(int(line.split("#")[1].split()[0])))
    return came


def test_a_qos_0_subscriber_that_does_not_read_uses_bounded_memory(gateway: Gateway) -> None:
    client = gateway.client("c")
    client.is_reading = False
    client.machine.receive(client.write.subscribe(("t/#", 0)))
    gateway.settle()
    assert waiting_bytes(gateway, "c") < 2 * HIGH_WATER
    assert client.machine.outbox.size < 2 * HIGH_WATER
    client.is_reading = True
    assert read_all(client) == list(range(COUNT))


def test_a_qos_1_subscriber_gets_more_as_it_acknowledges(gateway: Gateway) -> None:
    client = gateway.client("c")
    received = client.subscribe("t/#", 1)
    assert numbers(received) == [0, 1, 2]
    assert waiting_bytes(gateway, "c") < 2 * HIGH_WATER
    for line in received[1:]:
        client.machine.receive(client.write.puback(int(line.split("#")[1].split()[0])))
    assert read_all(client) == list(range(3, COUNT))


def test_a_persistent_session_gets_all_copies_on_disk_even_if_its_client_disconnects(gateway: Gateway) -> None:
    client = gateway.client("c", expiry=600)
    client.machine.receive(client.write.subscribe(("t/#", 1)))
    client.lose()
    for _ in range(20):
        gateway.advance(1)
    again = gateway.crashed()
    resumed = again.client("c", is_clean=False, expiry=600)
    first = numbers(resumed.backlog)
    for line in resumed.backlog:
        resumed.machine.receive(resumed.write.puback(int(line.split("#")[1].split()[0])))
    assert first + read_all(resumed) == list(range(COUNT))


def test_copies_for_the_disk_are_written_in_portions(gateway: Gateway) -> None:
    client = gateway.client("c", expiry=600)
    gateway.store.commit()
    client.machine.receive(client.write.subscribe(("t/#", 1)))
    queue = gateway.vhost.queue("mqtt-subscription-cqos1")
    assert 50 < len(queue) + queue.unsettled < COUNT / 2, "about a megabyte waits for the disk"
    gateway.settle()
    gateway.settle()
    assert len(queue) + queue.unsettled > COUNT / 2


def test_a_repeated_filter_gets_one_copy_of_each_message(gateway: Gateway) -> None:
    client = gateway.client("c")
    client.machine.receive(client.write.subscribe(*[("t/#", 0)] * 300))
    assert read_all(client) == list(range(COUNT))


def test_an_unsubscribed_filter_gets_no_more_copies(gateway: Gateway) -> None:
    client = gateway.client("c")
    client.is_reading = False
    client.machine.receive(client.write.subscribe(("t/#", 0)))
    gateway.settle()
    client.machine.receive(client.write.unsubscribe("t/#"))
    client.is_reading = True
    came = read_all(client)
    assert came == list(range(len(came)))
    assert len(came) < COUNT


def test_several_filters_are_served_in_order_on_their_own_terms(gateway: Gateway) -> None:
    client = gateway.client("c")
    as_published = options(1, as_published=True)
    client.machine.receive(client.write.subscribe(("t/1", 0), ("t/2", as_published), ("t/3", 1)))
    kinds = [line.split("'")[0].strip() for line in client.receive()]
    assert kinds == ["SUBACK #1 0 1 1", "PUBLISH retain t/1", "PUBLISH q1 #1 retain t/2", "PUBLISH q1 #2 retain t/3"]


def test_a_message_published_meanwhile_arrives_once(gateway: Gateway) -> None:
    client, writer = gateway.client("c"), gateway.client("w2")
    client.is_reading = False
    client.machine.receive(client.write.subscribe(("t/#", 0)))
    gateway.settle()
    writer.publish(f"t/{COUNT - 1}", b"9999", qos=1, id=1, retain=True)
    client.is_reading = True
    came = read_all(client)
    assert sorted(came) == [*range(COUNT - 1), 9999]


def test_the_disk_gets_no_more_than_it_can_write(gateway: Gateway) -> None:
    """Each copy is an unwritten change, and too many of them would block publishers."""
    client = gateway.client("c", expiry=600)
    client.machine.receive(client.write.subscribe(("t/#", 1)))
    gateway.turn.end()
    changes = [change for change in gateway.broker.journal._changes if isinstance(change, Enqueued)]
    assert not changes
    assert not gateway.broker.journal.disk_backlog.is_large
    assert gateway.broker.journal.backlog_bytes < 2 * 2**20
