"""A store that an attack has spoilt starts, says what it set aside, and keeps everything else."""

import json
import struct
import subprocess
import sys

import pika
import pytest

from tests.broker.conftest import Connect
from tests.durability import spoiling
from tests.interop.pika_client import fetch
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
def filled(gateway: Gateway, connect: Connect) -> Gateway:
    """A gateway that was stopped, with a queue ``q`` of three messages, the second in a queue ``shared`` too."""
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


def test_unusable_entities_are_set_aside_and_everything_else_is_restored(filled: Gateway, connect: Connect) -> None:
    records = [
        spoiling.policy("a long ttl", {"message-ttl": {"$": ["int", spoiling.LONG_TTL]}}),
        spoiling.policy("negative ttl", {"message-ttl": -1}),
        spoiling.policy("good", {"max-length": 100}),
        spoiling.binding("q", "\ud800", {}),
        spoiling.binding("gone", "key", {}),
        spoiling.parameter("torn", {"$": ["decimal", "no number"]}),
        (b"parameter:short", b"\x01"),
    ]
    spoiling.write(filled.data, "entities", records)
    filled.start()
    assert "set_aside=4" in filled.log
    asides = [line for line in filled.log.splitlines() if "store.set_aside" in line]
    assert len(asides) == 4
    assert any("gone" in line and "kind=binding" in line and "no queue 'gone'" in line for line in asides)
    assert "Traceback" not in filled.log
    assert "Records set aside: 4" in status(filled)
    assert fetch(connect().channel(), "q", 3) == [b"1", b"2", b"3"]
    filled.stop()
    filled.start()
    assert filled.log.count("set_aside=4") == 2, "what was set aside is told at each start"
    filled.stop()
    assert len(spoiling.read(filled.data, "quarantine")) == 4


def test_the_messages_of_a_queue_set_aside_are_kept_and_restored_with_it(filled: Gateway, connect: Connect) -> None:
    (key, record) = next(
        (key, record)
        for key, record in spoiling.read(filled.data, "entities").items()
        if key.startswith(b"queue:") and b'"shared"' in record
    )
    spoiling.write(filled.data, "entities", [(key, record.replace(b'"is_auto_delete"', b'"is_auto_delite"'))])
    filled.start()
    channel = connect().channel()
    assert "set_aside=2" in filled.log, "the queue, and the binding that leads to it"
    assert fetch(channel, "q", 3) == [b"1", b"2", b"3"]
    channel.queue_declare("another", durable=True)  # must not get the number of the queue that is set aside
    filled.stop()
    listed = [line.split("\t") for line in repair(filled, "list").stdout.splitlines()]
    assert sorted(kind for _, kind, *_ in listed) == ["binding", "queue"]
    (spoilt_key, spoilt) = next(iter(spoiling.read(filled.data, "quarantine").items()))
    for spoilt_key, spoilt in spoiling.read(filled.data, "quarantine").items():
        if b"is_auto_delite" in spoilt:
            mended = spoilt.replace(b'"is_auto_delite"', b'"is_auto_delete"')
            spoiling.write(filled.data, "quarantine", [(spoilt_key, mended)])
    assert repair(filled, "retry", "--all").stdout == "2 records restored\n"
    filled.start()
    assert filled.log.splitlines()[-1].count("set_aside=2") == 0
    channel = connect().channel()
    assert fetch(channel, "shared", 1) == [b"2"]
    assert channel.queue_declare("another", passive=True).method.message_count == 0


def test_damaged_queue_entries_and_contents_are_set_aside_and_the_others_delivered(
    filled: Gateway, connect: Connect
) -> None:
    contents = spoiling.read(filled.data, "contents")
    spoiling.write(filled.data, "contents", [(sorted(contents)[0], b"\x01\xff")])
    spoiling.write(filled.data, "enqueued", [(struct.pack(">Q", 10**6), b"\x01\x00")])
    filled.start()
    assert fetch(connect().channel(), "q", 2) == [b"2", b"3"]
    assert "store.set_aside" in filled.log_has("kind=message")
    assert "store.set_aside" in filled.log_has("kind=place")
    filled.stop()
    listed = repair(filled).stdout
    assert [line.split("\t")[1] for line in listed.splitlines()] == ["message", "place"]


def test_repair_lists_exports_and_drops(filled: Gateway, connect: Connect) -> None:
    spoiling.write(filled.data, "entities", [spoiling.binding("q", "\ud800", {}), spoiling.parameter("x", {"$": 1})])
    filled.start()
    running = repair(filled, "list")
    assert (running.returncode, running.stdout) == (69, "")
    assert running.stderr.startswith(f"gateway: the store in {filled.data} is in use by process ")
    filled.stop()
    listed = repair(filled, "list")
    assert (listed.returncode, listed.stderr) == (0, f"2 records are set aside in {filled.data}\n")
    first, second = (line.split("\t") for line in listed.stdout.splitlines())
    assert [first[0], first[1], second[0], second[1]] == ["1", "binding", "2", "parameter"]
    assert first[4] == "it holds text that is not UTF-8"
    exported = [json.loads(line) for line in repair(filled, "export").stdout.splitlines()]
    assert [each["kind"] for each in exported] == ["binding", "parameter"]
    assert exported[1]["key"] == ["/", "c", "x"]
    assert repair(filled, "check").stdout.endswith(" pages are in use, and none is damaged\n")
    assert repair(filled, "drop").returncode == 64
    wrong = repair(filled, "drop", "3")
    assert (wrong.returncode, wrong.stderr) == (
        69,
        "gateway: there is no record 3 in quarantine, which holds 2 records\n",
    )
    assert repair(filled, "drop", "1").stdout == "1 records dropped\n"
    assert repair(filled, "list").stdout.split("\t")[1] == "parameter"
    assert repair(filled, "drop", "--all").stdout == "1 records dropped\n"
    filled.start()
    assert "set_aside=0" in filled.log
    assert fetch(connect().channel(), "q", 3) == [b"1", b"2", b"3"]


def test_repair_without_a_store_prints_one_line(gateway: Gateway) -> None:
    done = repair(gateway, "list")
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr == f"gateway: there is no store in {gateway.data}\n"


def test_a_file_that_was_truncated_to_nothing_is_told(filled: Gateway) -> None:
    (filled.data / "data.mdb").write_bytes(b"")
    filled.start()
    assert str(filled.data / "data.mdb") in filled.log_has("data.mdb is empty, the broker starts without messages")
