"""``make cluster``: three NATS servers and three gateways on this machine, until Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pika
from pika.adapters.blocking_connection import BlockingConnection
from pika.adapters.utils.connection_workflow import AMQPConnectorException
from pika.exceptions import AMQPError

from tests.waiting import wait_until

_PROCESS = re.compile(r"^  (?:node )?(\S+)\s+pid (\d+)", re.MULTILINE)
_AMQP = re.compile(r"^  node (\S+)\s+pid \d+\s+(\w+); \S+ amqp (\d+),", re.MULTILINE)
_START_S = 120.0


class RunningCluster:
    """The command that runs, and what it has printed."""

    def __init__(self, process: "subprocess.Popen[bytes]", output: Path) -> None:
        self.process = process
        self.output = output

    @property
    def text(self) -> str:
        return self.output.read_text(errors="replace")

    @property
    def pids(self) -> dict[str, int]:
        return {name: int(pid) for name, pid in _PROCESS.findall(self.text)}

    @property
    def leader(self) -> str:
        (leader,) = [name for name, role, _ in _AMQP.findall(self.text) if role == "leads"]
        return leader

    def port(self, name: str) -> int:
        return {node: int(port) for node, _, port in _AMQP.findall(self.text)}[name]


@contextmanager
def running_cluster(directory: Path) -> Iterator[RunningCluster]:
    output = directory / "output"
    command = [sys.executable, "-m", "gateway.cli.local_cluster", "--data", str(directory / "cluster")]
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
    cluster = RunningCluster(process, output)
    try:

        def is_ready() -> bool:
            assert process.poll() is None, cluster.text
            return "Ctrl-C" in cluster.text

        wait_until(is_ready, lambda: cluster.text, timeout_s=_START_S)
        yield cluster
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def connected(port: int) -> BlockingConnection | None:
    parameters = pika.ConnectionParameters("127.0.0.1", port, socket_timeout=2, stack_timeout=3)
    try:
        return BlockingConnection(parameters)
    except (AMQPError, AMQPConnectorException, OSError):
        return None


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_message_outlives_the_leader_and_all_processes_end(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as cluster:
        assert set(cluster.pids) == {"nats-1", "nats-2", "nats-3", "a", "b", "c"}
        follower, *_ = (name for name in ("a", "b", "c") if name != cluster.leader)
        connection = connected(cluster.port(follower))
        assert connection is not None
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("hello", durable=True)
        channel.basic_publish("", "hello", b"Hello World!", pika.BasicProperties(delivery_mode=2))
        os.kill(cluster.pids[cluster.leader], signal.SIGKILL)
        others = [name for name in ("a", "b", "c") if name != cluster.leader]
        again = wait_until(
            lambda: next(filter(None, (connected(cluster.port(name)) for name in others)), None), lambda: cluster.text
        )
        _, _, body = again.channel().basic_get("hello", auto_ack=True)
        assert body == b"Hello World!"
        again.close()
        wait_until(lambda: f"{cluster.leader} (pid" in cluster.text, "the end of the leader is not reported")
        pids = cluster.pids
    assert cluster.process.returncode == 0
    assert "stopping" in cluster.text
    assert [name for name, pid in pids.items() if exists(pid)] == []
