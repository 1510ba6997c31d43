"""Message counts of queues by location, and consumer capacity."""

from typing import Any

import pytest
from pamqp import commands

from tests.management.console import Console
from tests.protocols.amqp.dialogue import Peer
from tests.protocols.amqp.frames import publish


@pytest.fixture
def peer(console: Console) -> Peer:
    """A client with a durable queue ``q``."""
    peer = console.gateway.connect()
    peer.send(commands.Queue.Declare(queue="q", durable=True))
    peer.receive()
    return peer


def queue(console: Console) -> Any:
    shown = console.get("/queues/%2F/q")
    (listed,) = console.get("/queues")
    assert {name: shown[name] for name in listed} == listed
    return shown


def test_messages_and_bytes_are_counted_by_location(console: Console, peer: Peer) -> None:
    for size, delivery_mode in ((10, 2), (20, 2), (40, 1)):
        peer.send(publish("", "q", b"x" * size, delivery_mode=delivery_mode))
    peer.send(commands.Basic.Get(queue="q"))
    peer.receive()
    shown = queue(console)
    expected = {
        "messages": 3, "messages_ready": 2, "messages_unacknowledged": 1,
        "messages_ram": 3, "messages_ready_ram": 2, "messages_unacknowledged_ram": 1,
        "messages_persistent": 2, "messages_paged_out": 0, "messages_delayed": 0,
        "message_bytes": 70, "message_bytes_ready": 60, "message_bytes_unacknowledged": 10,
        "message_bytes_ram": 70, "message_bytes_persistent": 30, "message_bytes_paged_out": 0,
        "disk_writes": 2, "disk_reads": 0,
    }  # fmt: skip
    assert {name: shown[name] for name in expected} == expected
    assert set(shown["garbage_collection"]) == {
        "fullsweep_after", "max_heap_size", "min_bin_vheap_size", "min_heap_size", "minor_gcs",
    }  # fmt: skip


def test_the_timestamp_of_the_head_is_shown(console: Console, peer: Peer) -> None:
    assert queue(console)["head_message_timestamp"] is None
    for timestamp in (1_700_000_000, 1_800_000_000):
        message = {"properties": {"timestamp": timestamp}, "routing_key": "q", "payload": ""}
        console.post("/exchanges/%2F/amq.default/publish", message | {"payload_encoding": "string"})
    assert queue(console)["head_message_timestamp"] == 1_700_000_000
    peer.send(commands.Basic.Get(queue="q", no_ack=True))
    peer.receive()
    assert queue(console)["head_message_timestamp"] == 1_800_000_000


def test_capacity_is_the_share_of_samples_with_consumers_ready_for_more(console: Console, peer: Peer) -> None:
    assert queue(console)["consumer_capacity"] == 0
    peer.send(commands.Basic.Qos(prefetch_count=1), commands.Basic.Consume(queue="q", consumer_tag="c"))
    peer.receive()
    assert queue(console)["consumer_capacity"] == 1
    list(console.statistics.sample())
    peer.send(publish("", "q"), publish("", "q"))
    peer.receive()
    capacities = []
    for _ in range(3):
        list(console.statistics.sample())
        capacities.append(queue(console)["consumer_capacity"])
    assert capacities == [0.8, 0.64, 0.512]
    assert queue(console)["consumer_utilisation"] == 0.512
    peer.send(commands.Basic.Ack(0, True))
    peer.receive()
    list(console.statistics.sample())
    assert queue(console)["consumer_capacity"] == 0.61
    peer.send(commands.Basic.Cancel("c"))
    peer.receive()
    assert queue(console)["consumer_capacity"] == 0


def test_listings_can_be_sorted_by_numbers_of_bytes(console: Console, peer: Peer) -> None:
    console.put("/queues/%2F/long", {})
    peer.send(publish("", "q", b"xx"), publish("", "long", b"x" * 50))
    peer.receive()
    names = [each["name"] for each in console.get("/queues?sort=message_bytes&sort_reverse=true")]
    assert names == ["long", "q"]
    assert console.get("/queues?columns=message_bytes_ram,name")[0] == {"message_bytes_ram": 50, "name": "long"}


def test_the_owner_of_an_exclusive_queue_is_shown(console: Console, peer: Peer) -> None:
    peer.send(commands.Queue.Declare(queue="mine", exclusive=True))
    peer.receive()
    assert console.get("/queues/%2F/mine")["owner_pid_details"] == {"name": peer.name}


def test_the_overview_counts_messages_written_to_the_store(console: Console, peer: Peer) -> None:
    peer.send(publish("", "q", b"x", delivery_mode=2))
    peer.receive()
    list(console.statistics.sample())
    peer.send(commands.Queue.Delete(queue="q"))
    peer.receive()
    list(console.statistics.sample())
    assert console.get("/overview")["message_stats"]["disk_writes"] == 1
    assert console.get("/nodes")[0]["msg_store_write_count"] == 1
