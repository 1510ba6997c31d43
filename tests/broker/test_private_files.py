"""Access rights of the broker's files: directories 0700, files 0600, including existing ones."""

import stat
import subprocess
import sys
from pathlib import Path

import pika

from tests.broker.conftest import Connect
from tests.running import PROJECT, Gateway

STREAM = {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 65_536}


def open_to_others(directory: Path) -> list[str]:
    """Return the files and directories that the group or others may access."""
    entries = [directory, *directory.rglob("*")]
    return [f"{stat.filemode(entry.stat().st_mode)} {entry}" for entry in entries if entry.stat().st_mode & 0o077]


def fill(gateway: Gateway, connect: Connect) -> None:
    """Create messages, a stream with files, and spilled contents."""
    channel = connect().channel()
    channel.queue_declare("q", durable=True)
    channel.queue_declare("log", durable=True, arguments=STREAM)
    channel.confirm_delivery()
    for _ in range(20):
        channel.basic_publish("", "log", bytes(20_000), pika.BasicProperties(delivery_mode=2))
        channel.basic_publish("", "q", bytes(2000), pika.BasicProperties(delivery_mode=2))


def test_the_data_directory_and_a_backup_are_closed_to_others(
    gateway: Gateway, connect: Connect, tmp_path: Path
) -> None:
    gateway.start()
    fill(gateway, connect)
    assert gateway.data.stat().st_mode & 0o777 == 0o700
    assert open_to_others(gateway.data) == []
    copy = tmp_path / "copy"
    command = [sys.executable, "-m", "gateway", "backup", str(gateway.data), str(copy)]
    subprocess.run(command, cwd=PROJECT, check=True, timeout=60, capture_output=True, stdin=subprocess.DEVNULL)
    assert open_to_others(copy) == []
    assert (copy / "data.mdb").stat().st_mode & 0o777 == 0o600


def test_an_open_directory_is_made_private_and_logged_once(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    fill(gateway, connect)
    gateway.stop()
    for entry in (gateway.data, *gateway.data.rglob("*")):
        entry.chmod(0o755 if entry.is_dir() else 0o644)
    gateway.start()
    assert open_to_others(gateway.data) == []
    gateway.restart()
    assert gateway.log.count("data directory made private") == 1
