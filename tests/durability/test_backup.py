"""``gateway backup``: copies of a running broker's data, on which another broker can start."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker.conftest import Connect
from tests.durability.expected import ExpectedMessages
from tests.durability.load import Publisher
from tests.durability.test_killed_under_load import contents
from tests.running import PROJECT, Gateway, gateway_in
from tests.waiting import wait_until

TIMEOUT_S = 30


def backup(data: Path, target: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "gateway", "backup", str(data), str(target)]
    return subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL
    )


def wait_until_confirmed(expected: ExpectedMessages, count: int) -> None:
    """Wait until so many messages are confirmed."""
    wait_until(
        lambda: len(expected.required) >= count,
        lambda: f"{len(expected.required)} of {count} messages are confirmed",
        timeout_s=TIMEOUT_S,
    )


def test_a_backup_under_load_contains_messages_confirmed_before_it(
    gateway: Gateway, connect: Connect, tmp_path: Path
) -> None:
    gateway.start()
    connect().channel().queue_declare("q", durable=True)
    expected = ExpectedMessages()
    publisher = Publisher(gateway.broker, "a", 0, "", "q", [expected], 20)
    publisher.start()
    assert publisher.is_busy.wait(10)
    wait_until_confirmed(expected, 100)
    before = set(expected.required)
    done = backup(gateway.data, tmp_path / "restored" / "data")
    assert (done.returncode, done.stderr) == (0, "")
    assert publisher.is_alive()
    assert len(expected.required) > len(before)
    gateway.kill()
    publisher.ended()
    with gateway_in(tmp_path / "restored") as restored:
        restored_account = ExpectedMessages(sent=expected.sent, required=before)
        restored_account.audit(contents(connect(restored).channel(), "q"))


def test_a_backup_is_compact(gateway: Gateway, connect: Connect, tmp_path: Path) -> None:
    gateway.start()
    channel = connect().channel()
    channel.queue_declare("q", durable=True)
    expected = ExpectedMessages()
    publisher = Publisher(gateway.broker, "a", 0, "", "q", [expected], 20)
    publisher.start()
    assert publisher.is_busy.wait(10)
    wait_until_confirmed(expected, 500)
    gateway.restart()
    publisher.ended()
    channel = connect().channel()
    channel.queue_purge("q")
    assert backup(gateway.data, tmp_path / "copy").returncode == 0
    assert (tmp_path / "copy" / "data.mdb").stat().st_size < (gateway.data / "data.mdb").stat().st_size / 4


def test_a_stopped_broker_can_be_backed_up(gateway: Gateway, connect: Connect, tmp_path: Path) -> None:
    gateway.start()
    connect().channel().queue_declare("q", durable=True)
    gateway.stop()
    assert backup(gateway.data, tmp_path / "restored" / "data").returncode == 0
    with gateway_in(tmp_path / "restored") as restored:
        connect(restored).channel().queue_declare("q", passive=True)


@pytest.mark.parametrize("fault", ["no store", "not empty", "cannot be written"])
def test_a_failed_backup_prints_one_line(fault: str, gateway: Gateway, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    if fault == "no store":
        done, reason = backup(tmp_path / "nothing", target), f"there is no store in {tmp_path}/nothing"
    elif fault == "not empty":
        gateway.start()
        target.mkdir()
        (target / "file").touch()
        done, reason = backup(gateway.data, target), f"{target} is not empty"
    else:
        gateway.start()
        target = Path("/proc/none")
        done, reason = backup(gateway.data, target), f"the store in {gateway.data} cannot be copied to /proc/none: "
    assert done.returncode == 69
    assert done.stdout == ""
    assert done.stderr.startswith(f"gateway: {reason}")
    assert done.stderr.count("\n") == 1
