"""Compaction of the store while the broker runs; a kill at any moment loses nothing."""

import json
import re
import subprocess
import sys
import time
import urllib.request
from base64 import b64encode
from typing import Any

import pika
import pytest

from tests.broker.conftest import Connect
from tests.durability.expected import ExpectedMessages
from tests.durability.load import Publisher
from tests.durability.test_killed_under_load import contents
from tests.running import PROJECT, Gateway
from tests.waiting import wait_until

PERSISTENT = pika.BasicProperties(delivery_mode=2)
MANUAL = "storage.compact_at=0"


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", *words]
    return subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL
    )


def ctl(gateway: Gateway, *words: str) -> "subprocess.CompletedProcess[str]":
    host, port = gateway.addresses["management"]
    return run("gateway.cli.ctl", "--url", f"http://{host}:{port}", *words)


def ask(gateway: Gateway, method: str, path: str) -> Any:  # Any: JSON
    host, port = gateway.addresses["management"]
    request = urllib.request.Request(f"http://{host}:{port}/api/{path}", b"" if method == "POST" else None)
    request.method = method
    request.add_header("Authorization", "Basic " + b64encode(b"guest:guest").decode())
    with urllib.request.urlopen(request, timeout=10) as answer:
        body = answer.read()
    return json.loads(body) if body else None


def size(gateway: Gateway) -> int:
    return (gateway.data / "data.mdb").stat().st_size


def fill_and_purge(gateway: Gateway, connect: Connect, megabytes: int) -> None:
    """Grow the file by this size, then free most of it; the messages in ``kept`` stay."""
    channel = connect().channel()
    for queue in ("kept", "drained", "q"):
        channel.queue_declare(queue, durable=True)
    channel.confirm_delivery()
    for number in range(megabytes):
        channel.basic_publish("", "drained", bytes(2**20), PERSISTENT)
        channel.basic_publish("", "kept", str(number).encode(), PERSISTENT)
    channel.queue_purge("drained")
    channel.basic_publish("", "kept", b"last", PERSISTENT)


def fetch_kept(connect: Connect) -> list[bytes]:
    channel = connect().channel()
    found = []
    while (got := channel.basic_get("kept", auto_ack=True))[0] is not None:
        found.append(got[2])
    return found


def test_gatewayctl_compacts_a_running_broker_under_load(gateway: Gateway, connect: Connect) -> None:
    gateway.start(MANUAL)
    fill_and_purge(gateway, connect, 80)
    before = size(gateway)
    expected = ExpectedMessages()
    publisher = Publisher(gateway.broker, "a", 0, "", "q", [expected], 20)
    publisher.start()
    assert publisher.is_busy.wait(10)
    done = ctl(gateway, "compact")
    assert (done.returncode, done.stderr) == (0, ""), done
    reported = re.fullmatch(r"(\d+) bytes became (\d+)", done.stdout.splitlines()[-1])
    assert reported, done.stdout
    assert before // 4096 * 4096 <= int(reported[1]) < before + 2**20  # the redo log and the reserve follow
    assert int(reported[2]) < before // 2  # what is published meanwhile counts
    assert publisher.is_alive(), "a publisher was disconnected"
    confirmed = len(expected.required)
    gateway.log_has("store.compacted")
    wait_until(lambda: len(expected.required) >= confirmed + 100, "nothing is confirmed any more")
    info = ask(gateway, "GET", "store")
    assert info["compaction"]["state"] == "done"
    assert info["file_bytes"] - info["used_bytes"] == info["free_bytes"]
    gateway.kill()
    publisher.ended()
    gateway.start(MANUAL)
    expected.audit(contents(connect().channel(), "q"))
    assert fetch_kept(connect) == [*(str(number).encode() for number in range(80)), b"last"]
    assert "Traceback" not in gateway.log


@pytest.mark.parametrize("after_s", [0.0, 0.1, 0.3, 0.6, 0.8, 0.9, 1.0, 1.2])
def test_a_kill_during_a_compaction_loses_nothing(gateway: Gateway, connect: Connect, after_s: float) -> None:
    gateway.start(MANUAL)
    fill_and_purge(gateway, connect, 20)
    expected = ExpectedMessages()
    publisher = Publisher(gateway.broker, "a", 0, "", "q", [expected], 20)
    publisher.start()
    assert publisher.is_busy.wait(10)
    ask(gateway, "POST", "store/compact")
    time.sleep(after_s)  # the time of the kill is the parameter of this test
    gateway.kill()
    publisher.ended()
    gateway.start(MANUAL)
    assert not (gateway.data / "compacting").exists()
    expected.audit(contents(connect().channel(), "q"))
    assert fetch_kept(connect) == [*(str(number).encode() for number in range(20)), b"last"]


def test_a_start_compacts_automatically_when_enough_is_free(gateway: Gateway, connect: Connect) -> None:
    gateway.start(MANUAL)
    fill_and_purge(gateway, connect, 20)
    gateway.stop()
    before = size(gateway)
    gateway.start("storage.compact_at=100MB")
    gateway.stop()
    assert "store.compacting" not in gateway.log
    gateway.start("storage.compact_at=10MB")
    gateway.log_has("store.compacted")
    assert size(gateway) < before / 4
    assert fetch_kept(connect) == [*(str(number).encode() for number in range(20)), b"last"]


def test_gateway_compact_compacts_a_stopped_store_and_refuses_a_running_one(gateway: Gateway, connect: Connect) -> None:
    gateway.start(MANUAL)
    fill_and_purge(gateway, connect, 20)
    before = size(gateway)
    running = run("gateway", "compact", "--data", str(gateway.data))
    assert (running.returncode, running.stdout) == (69, "")
    assert running.stderr.startswith(f"gateway: the store in {gateway.data} is in use by process ")
    assert running.stderr.count("\n") == 1
    gateway.stop()
    done = run("gateway", "compact", "--data", str(gateway.data))
    assert (done.returncode, " bytes became " in done.stdout) == (0, True), done
    assert size(gateway) < before / 4
    assert not (gateway.data / "compacting").exists()
    gateway.start(MANUAL)
    assert fetch_kept(connect) == [*(str(number).encode() for number in range(20)), b"last"]


def test_a_backup_and_a_compaction_can_run_together(gateway: Gateway, connect: Connect) -> None:
    gateway.start(MANUAL)
    fill_and_purge(gateway, connect, 30)
    before = size(gateway)
    backup = subprocess.Popen(
        [sys.executable, "-m", "gateway", "backup", str(gateway.data), str(gateway.directory / "copy")], cwd=PROJECT
    )
    done = ctl(gateway, "compact")
    assert backup.wait(60) == 0
    assert done.returncode == 0
    assert size(gateway) < before / 4
    for data in (gateway.data, gateway.directory / "copy"):
        gateway.end()
        gateway.data = data
        gateway.start(MANUAL)
        assert len(fetch_kept(connect)) == 31
