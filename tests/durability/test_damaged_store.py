"""A broker starts on a damaged store, reports the records it sets aside, and keeps everything else."""

import json
import struct
import subprocess
import sys

import pika
import pytest

from tests.broker.conftest import Connect
from tests.durability import raw_records
from tests.interop.amqp_clients.pika_client import fetch
from tests.running import PROJECT, Gateway

PERSISTENT = pika.BasicProperties(delivery_mode=2)


def repair(gateway: Gateway, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "gateway", "repair", "--data", str(gateway.data), *arguments]
    return subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL
    )


def status(gateway: Gateway) -> str:
    host, port = gateway.addresses["management"]
    command = [sys.executable, "-m", "gateway.cli.ctl", "--url", f"http://{host}:{port}", "status"]
    done = subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, check=True, timeout=60, stdin=subprocess.DEVNULL
    )
    return done.stdout


@pytest.fixture
def stopped(gateway: Gateway, connect: Connect) -> Gateway:
    """A stopped gateway with a queue ``q`` of three messages, the second of which is also in a queue ``shared``."""
    gateway.start()
    channel = connect().channel()
    for queue in ("q", "shared"):
        channel.queue_declare(queue, durable=True)
    channel.queue_bind("q", "amq.topic", "q")
    channel.queue_bind("q", "amq.topic", "both")
    channel.queue_bind("shared", "amq.topic", "both")
    channel.confirm_delivery()
    for body, key in ((b"1", "q"), (b"2", "both"), (b"3", "q")):
        channel.basic_publish("amq.topic", key, body, PERSISTENT)
    gateway.stop()
    return gateway


def test_unusable_entities_are_set_aside_and_everything_else_is_restored(stopped: Gateway, connect: Connect) -> None:
    records = [
        raw_records.policy("a long ttl", {"message-ttl": {"$": ["int", raw_records.LONG_TTL]}}),
        raw_records.policy("negative ttl", {"message-ttl": -1}),
        raw_records.policy("good", {"max-length": 100}),
        raw_records.binding("q", "\ud800", {}),
        raw_records.binding("gone", "key", {}),
        raw_records.parameter("torn", {"$": ["decimal", "no number"]}),
        (b"parameter:short", b"\x01"),
    ]
    raw_records.write(stopped.data, "entities", records)
    stopped.start()
    assert "set_aside=4" in stopped.log
    asides = [line for line in stopped.log.splitlines() if "store.set_aside" in line]
    assert len(asides) == 4
    assert any("gone" in line and "kind=binding" in line and "no queue 'gone'" in line for line in asides)
    assert "Traceback" not in stopped.log
    assert "Records set aside: 4" in status(stopped)
    assert fetch(connect().channel(), "q", 3) == [b"1", b"2", b"3"]
    stopped.stop()
    stopped.start()
    assert stopped.log.count("set_aside=4") == 2, "records set aside are reported at each start"
    stopped.stop()
    assert len(raw_records.read(stopped.data, "quarantine")) == 4


def test_the_messages_of_a_queue_set_aside_are_kept_and_restored_with_it(stopped: Gateway, connect: Connect) -> None:
    (key, record) = next(
        (key, record)
        for key, record in raw_records.read(stopped.data, "entities").items()
        if key.startswith(b"queue:") and b'"shared"' in record
    )
    raw_records.write(stopped.data, "entities", [(key, record.replace(b'"is_auto_delete"', b'"is_auto_delite"'))])
    stopped.start()
    channel = connect().channel()
    assert "set_aside=2" in stopped.log, "the queue, and its binding"
    assert fetch(channel, "q", 3) == [b"1", b"2", b"3"]
    channel.queue_declare("another", durable=True)  # must not get the id of the queue set aside
    stopped.stop()
    listed = [line.split("\t") for line in repair(stopped, "list").stdout.splitlines()]
    assert sorted(kind for _, kind, *_ in listed) == ["binding", "queue"]
    (damaged_key, damaged) = next(iter(raw_records.read(stopped.data, "quarantine").items()))
    for damaged_key, damaged in raw_records.read(stopped.data, "quarantine").items():
        if b"is_auto_delite" in damaged:
            repaired = damaged.replace(b'"is_auto_delite"', b'"is_auto_delete"')
            raw_records.write(stopped.data, "quarantine", [(damaged_key, repaired)])
    assert repair(stopped, "retry", "--all").stdout == "2 records restored\n"
    stopped.start()
    assert stopped.log.splitlines()[-1].count("set_aside=2") == 0
    channel = connect().channel()
    assert fetch(channel, "shared", 1) == [b"2"]
    assert channel.queue_declare("another", passive=True).method.message_count == 0


def test_damaged_queue_entries_and_contents_are_set_aside_and_the_others_delivered(
    stopped: Gateway, connect: Connect
) -> None:
    contents = raw_records.read(stopped.data, "contents")
    raw_records.write(stopped.data, "contents", [(sorted(contents)[0], b"\x01\xff")])
    raw_records.write(stopped.data, "enqueued", [(struct.pack(">Q", 10**6), b"\x01\x00")])
    stopped.start()
    assert fetch(connect().channel(), "q", 2) == [b"2", b"3"]
    assert "store.set_aside" in stopped.log_has("kind=message")
    assert "store.set_aside" in stopped.log_has("kind=place")
    stopped.stop()
    listed = repair(stopped).stdout
    assert [line.split("\t")[1] for line in listed.splitlines()] == ["message", "place"]


def test_repair_lists_exports_and_drops(stopped: Gateway, connect: Connect) -> None:
    raw_records.write(
        stopped.data, "entities", [raw_records.binding("q", "\ud800", {}), raw_records.parameter("x", {"$": 1})]
    )
    stopped.start()
    running = repair(stopped, "list")
    assert (running.returncode, running.stdout) == (69, "")
    assert running.stderr.startswith(f"gateway: the store in {stopped.data} is in use by process ")
    stopped.stop()
    listed = repair(stopped, "list")
    assert (listed.returncode, listed.stderr) == (0, f"2 records are set aside in {stopped.data}\n")
    first, second = (line.split("\t") for line in listed.stdout.splitlines())
    assert [first[0], first[1], second[0], second[1]] == ["1", "binding", "2", "parameter"]
    assert first[4] == "it holds text that is not UTF-8"
    exported = [json.loads(line) for line in repair(stopped, "export").stdout.splitlines()]
    assert [each["kind"] for each in exported] == ["binding", "parameter"]
    assert exported[1]["key"] == ["/", "c", "x"]
    assert repair(stopped, "check").stdout.endswith(" pages are in use, and none is damaged\n")
    assert repair(stopped, "drop").returncode == 64
    wrong = repair(stopped, "drop", "3")
    assert (wrong.returncode, wrong.stderr) == (
        69,
        "gateway: there is no record 3 in quarantine, which holds 2 records\n",
    )
    assert repair(stopped, "drop", "1").stdout == "1 records dropped\n"
    assert repair(stopped, "list").stdout.split("\t")[1] == "parameter"
    assert repair(stopped, "drop", "--all").stdout == "1 records dropped\n"
    stopped.start()
    assert "set_aside=0" in stopped.log
    assert fetch(connect().channel(), "q", 3) == [b"1", b"2", b"3"]


def test_repair_without_a_store_prints_one_line(gateway: Gateway) -> None:
    done = repair(gateway, "list")
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr == f"gateway: there is no store in {gateway.data}\n"


def test_a_copy_of_a_cluster_in_the_directory_is_reported_at_the_start(stopped: Gateway) -> None:
    (stopped.data / "cluster-copy").mkdir()
    stopped.start()
    assert str(stopped.data / "cluster-copy") in stopped.log_has("data of a cluster is not used")


def test_an_empty_data_file_is_reported_at_the_start(stopped: Gateway) -> None:
    (stopped.data / "data.mdb").write_bytes(b"")
    stopped.start()
    assert str(stopped.data / "data.mdb") in stopped.log_has("data.mdb is empty, the broker starts without messages")
